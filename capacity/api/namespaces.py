"""A namespace, a workload, and GPU pods by workload, as on their pages."""

from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from capacity.api.usage import CoverageSerializer, UsageAmountSerializer, UsageLineSerializer
from capacity.namespaces import NamespaceReport, namespace_report, read_workload
from capacity.pods.pod_filter import BY_WORKLOAD, LONGEST, LONGEST_OWNER, ORDERS, WORST_FIRST, PodFilter
from capacity.pods.rows import table_of
from capacity.pods.workload_groups import WorkloadGroup, groups_of
from edges.rest import Asked, Edge
from fleet.models import Cluster
from fleet.states.pod import PodState
from health.api.gpu import OpenFindingSerializer

STATES = ", ".join(f"`{state.value}`" for state in PodState)


class WorkloadPodsSerializer(serializers.Serializer):
    cluster = serializers.CharField(help_text="Name of the cluster.")
    namespace = serializers.CharField()
    kind = serializers.CharField(help_text="Kind of the topmost watched owner. Blank: nothing controls the pods.")
    name = serializers.CharField()
    pods = serializers.IntegerField()
    pods_wanted = serializers.IntegerField(
        source="desired",
        allow_null=True,
        help_text="GPU pods that a JobSet, Ray or Kubeflow owner wants. Null: unknown.",
    )
    by_state = serializers.SerializerMethodField(help_text=f"Pods by state, those without pods left out: {STATES}.")
    gpus = serializers.IntegerField(
        help_text="Of its pods that have a node and have not ended. On shared GPUs, a unit is a share."
    )
    gpus_waiting = serializers.IntegerField(
        source="waiting_gpus", help_text="GPUs that its pods without a node request."
    )
    oldest_pod_at = serializers.DateTimeField(source="oldest", help_text="When its oldest pod was created.")

    @extend_schema_field(serializers.DictField(child=serializers.IntegerField()))
    def get_by_state(self, group: WorkloadGroup) -> dict[str, int]:
        return {state.value: number for state, number in group.worst_first}


class PodWorkloadsAsked(Asked):
    q = serializers.CharField(
        required=False, max_length=LONGEST, default="", help_text="A part of the name of a pod or of its controller."
    )
    cluster = serializers.CharField(required=False, max_length=LONGEST, default="", help_text="Name of the cluster.")
    namespace = serializers.CharField(required=False, max_length=LONGEST, default="")
    state = serializers.ChoiceField([state.value for state in PodState], required=False, default="")
    pool = serializers.CharField(
        required=False, max_length=LONGEST, default="", help_text="Pool of the node as `cluster/name`; `none`."
    )
    resource = serializers.CharField(required=False, max_length=LONGEST, default="")
    node = serializers.CharField(required=False, max_length=LONGEST, default="")
    owner = serializers.CharField(required=False, max_length=LONGEST_OWNER, default="", help_text="As `Job/train`.")
    ordering = serializers.ChoiceField(list(ORDERS), default=WORST_FIRST)
    limit = serializers.IntegerField(min_value=1, max_value=1000, default=100)


class PodWorkloadsSerializer(serializers.Serializer):
    count = serializers.IntegerField(help_text="Workloads that match.")
    workloads = WorkloadPodsSerializer(many=True, help_text="The first `limit` of them.")


class PodWorkloads(Edge):
    @extend_schema(parameters=[PodWorkloadsAsked], responses=PodWorkloadsSerializer)
    def get(self, request) -> Response:
        """Returns the GPU pods by the workload that they belong to."""
        asked = PodWorkloadsAsked(data=request.query_params.dict())
        asked.is_valid(raise_exception=True)
        given = dict(asked.validated_data)
        most = given.pop("limit")
        groups = groups_of(table_of(self.user, PodFilter(by=BY_WORKLOAD, **given), now=timezone.now()))
        return Response(PodWorkloadsSerializer({"count": len(groups), "workloads": groups[:most]}).data)


class RequestedResourceSerializer(serializers.Serializer):
    resource = serializers.CharField()
    has = serializers.IntegerField(help_text="Requested by pods that have a node and have not ended.")
    waits = serializers.IntegerField(help_text="Requested by pods without a node.")
    allocatable = serializers.IntegerField(help_text="On all visible nodes of the cluster.")


class NamespaceQuotaSerializer(serializers.Serializer):
    name = serializers.CharField(help_text="Name of the ResourceQuota.")
    resource = serializers.CharField()
    used = serializers.CharField(help_text="As its cluster wrote it. Blank: not counted yet.")
    hard = serializers.CharField()
    is_full = serializers.BooleanField()


class NamespaceUsageSerializer(serializers.Serializer):
    first = serializers.DateField()
    last = serializers.DateField()
    coverage = CoverageSerializer()
    total = UsageAmountSerializer()
    days = UsageLineSerializer(many=True)


class NamespaceSerializer(serializers.Serializer):
    cluster = serializers.CharField(source="cluster.name")
    namespace = serializers.CharField()
    workload = serializers.CharField(help_text="Kind and name, as `Job/train`. Blank: the whole namespace.")
    seen_at = serializers.DateTimeField(
        source="freshness.last_seen_at", allow_null=True, help_text="Last update of the cluster. Null: never."
    )
    owner = serializers.CharField(
        allow_null=True, help_text="By the label of the namespace that names owners. Blank: none. Null: not known now."
    )
    pod_security = serializers.CharField(allow_null=True, help_text="Enforced level. Blank: none. Null: not known now.")
    deleted_at = serializers.DateTimeField(
        source="row.deleted_at", default=None, allow_null=True, help_text="When the deletion of the namespace began."
    )
    held_by = serializers.CharField(
        source="row.held_by", default="", help_text="Reasons why the deletion is not finished."
    )
    pods = serializers.SerializerMethodField(help_text="GPU pods.")
    resources = RequestedResourceSerializer(many=True)
    quotas = NamespaceQuotaSerializer(
        many=True, allow_null=True, help_text="Quotas on GPUs. Null: not read, or you do not see the whole cluster."
    )
    workload_count = serializers.SerializerMethodField()
    workloads = serializers.SerializerMethodField(help_text="Worst first, at most 1000.")
    usage = NamespaceUsageSerializer(help_text="GPU-hours of the last 30 UTC days.")
    usage_recorded_for = serializers.CharField(
        source="recorded_for",
        help_text="The topmost owner, which has the GPU-hours of this workload's pods. Blank: the workload itself.",
    )
    findings = OpenFindingSerializer(
        many=True, help_text="Open findings of its workloads and of the nodes with its pods, at most 20."
    )
    has_more_findings = serializers.BooleanField(source="more_findings")

    def get_pods(self, found: NamespaceReport) -> int:
        return len(found.table)

    def get_workload_count(self, found: NamespaceReport) -> int:
        return len(found.groups)

    @extend_schema_field(WorkloadPodsSerializer(many=True))
    def get_workloads(self, found: NamespaceReport) -> list[dict]:
        return list(WorkloadPodsSerializer(found.groups[:1000], many=True).data)


class NamespaceDetail(Edge):
    @extend_schema(responses=NamespaceSerializer)
    def get(self, request, cluster_id: int, namespace: str) -> Response:
        """Returns requests, quota, pods by workload, GPU-hours and findings of a namespace."""
        return self.answer(cluster_id, namespace)

    def answer(self, cluster_id: int, namespace: str, workload: str = "") -> Response:
        cluster = self.load(Cluster.objects.visible_to(self.user).select_related("observer"), cluster_id)
        found = namespace_report(self.user, cluster, namespace, workload, now=timezone.now())
        return Response(NamespaceSerializer(found).data)


class WorkloadDetail(NamespaceDetail):
    @extend_schema(responses=NamespaceSerializer)
    def get(self, request, cluster_id: int, workload: str) -> Response:
        """Returns the same of a workload, as `ml/Job/train`: namespace, kind and name."""
        named = read_workload(workload)
        if named is None:
            raise Http404
        return self.answer(cluster_id, *named)
