"""The placement of a pool's running pods, as on its page."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from capacity.placements.placement_measures import measures_of_pool
from capacity.placements.placement_report import PolicyState, placement_of_pool
from capacity.placements.service_level_history import CLASSES_MEASURED
from edges.rest import Edge
from fleet.models import Pool
from fleet.models.pool import PlacementPolicy, WorkloadClass

STATES = [state.value for state in PolicyState]


class PackSerializer(serializers.Serializer):
    used = serializers.IntegerField(help_text="Nodes with pods that have whole GPUs.")
    needed = serializers.IntegerField(
        help_text="Of these, if the pods were packed, by GPUs alone. Nodes with other pods stay in use."
    )
    free = serializers.IntegerField(help_text="Whole GPUs on the used nodes that no pod has.")


class ConcentratedSerializer(serializers.Serializer):
    name = serializers.CharField(help_text="Kind, namespace and name of the workload.")
    pods = serializers.IntegerField()
    domain = serializers.CharField(help_text="The value of the label with the most of these pods.")
    pods_in_domain = serializers.IntegerField()


class SpreadSerializer(serializers.Serializer):
    domains = serializers.IntegerField(help_text="Values of the label on the GPU nodes of the pool.")
    unlabelled = serializers.IntegerField(help_text="GPU nodes without the label. Their pods are not counted.")
    workloads = serializers.IntegerField(help_text="Workloads with at least two running pods.")
    concentrated = serializers.IntegerField(
        help_text="Of these, with more than half of the pods, and a quarter more than an even share, in one domain."
    )
    worst = ConcentratedSerializer(many=True)


class SharedSerializer(serializers.Serializer):
    nodes = serializers.IntegerField(help_text="Nodes with shared GPUs.")
    read = serializers.IntegerField(help_text="Nodes whose pods are counted here.")
    gpus = serializers.IntegerField(help_text="Shared GPUs with pods of several namespaces.")
    most = serializers.IntegerField(help_text="Most namespaces on one GPU.")
    unplaced = serializers.IntegerField(help_text="Pods on unknown GPUs. They are not counted.")


class PolicyPlacementSerializer(serializers.Serializer):
    placement_policy = serializers.ChoiceField(PlacementPolicy.choices, source="policy")
    spread_label = serializers.CharField(source="label", help_text="The node label to spread over. Blank: hosts.")
    state = serializers.ChoiceField(
        STATES,
        help_text="unknown: fewer than two domains are known. no_pods: no running pods to compare.",
    )
    pack = PackSerializer()
    spread = SpreadSerializer()


class ClassPlacementSerializer(PolicyPlacementSerializer):
    workload_class = serializers.ChoiceField(
        WorkloadClass.choices,
        help_text="By the topmost owner of a known kind: jobs, services, or notebooks and single pods.",
    )


class PlacementSerializer(PolicyPlacementSerializer):
    classes = ClassPlacementSerializer(
        many=True, help_text="Classes with a policy of their own. The fields beside are about all other pods."
    )
    shared = SharedSerializer(allow_null=True, help_text="Null: no GPU of the pool is shared.")


class HeatSerializer(serializers.Serializer):
    node_hours = serializers.IntegerField(
        help_text="Hours of nodes with a GPU that was busy for half of the hour or more."
    )
    temperature = serializers.FloatField(allow_null=True, help_text="Mean, in °C. Null: not exported.")
    temperature_max = serializers.FloatField(allow_null=True)
    power_watts = serializers.FloatField(allow_null=True, help_text="Mean of a GPU.")
    throttled = serializers.FloatField(allow_null=True, help_text="Part of the time, 0 to 1.")


class FailureSerializer(serializers.Serializer):
    failures = serializers.IntegerField(help_text="Critical findings of the days; those within ten minutes are one.")
    in_one_domain = serializers.IntegerField(
        allow_null=True, help_text="Of these, with several nodes of one domain. Null: the pool has no `spread_label`."
    )
    elsewhere = serializers.IntegerField(help_text="Of these, with several nodes that share no domain.")
    unknown = serializers.IntegerField(
        help_text="Of these, with several nodes, some of them gone or without the label: the domains are unknown."
    )
    most_nodes = serializers.IntegerField()
    days = serializers.IntegerField(help_text="30, or as long as history is stored.")
    hours = serializers.IntegerField(help_text="Whole hours of these days in which the cluster was watched.")
    is_cut = serializers.BooleanField(help_text="There were more findings: only the newest 2,000 are counted.")


class NodeLossSerializer(serializers.Serializer):
    node = serializers.IntegerField(source="key")
    name = serializers.CharField()
    workloads = serializers.IntegerField()
    gpu_hours_lost = serializers.FloatField(source="gpu_hours", help_text="Work of jobs since they started.")
    gpu_hours_loading = serializers.FloatField(source="loading_gpu_hours", help_text="Until the pods are Ready again.")


class SpanningPodSerializer(serializers.Serializer):
    name = serializers.CharField(help_text="Namespace and name of the pod.")
    node = serializers.CharField()


class NumaSerializer(serializers.Serializer):
    nodes = serializers.IntegerField(help_text="Nodes with a NodeResourceTopology.")
    policies = serializers.DictField(
        child=serializers.IntegerField(), help_text="Nodes by topology policy of their kubelet. Blank: unknown."
    )
    unaligned_nodes = serializers.IntegerField(
        help_text="Nodes with the policy `none` or `best-effort`, and with pods that one NUMA node could hold."
    )
    unaligned_pods = serializers.IntegerField(help_text="Pods of these nodes with several GPUs.")
    spanning = SpanningPodSerializer(
        source="named", many=True, help_text="Pods that have GPUs of several NUMA nodes, at most 20. Others may too."
    )
    spanning_unnamed = serializers.IntegerField(source="unnamed", help_text="More such pods.")


class ServiceLevelFiguresSerializer(serializers.Serializer):
    title = serializers.CharField()
    unit = serializers.CharField(help_text="Blank: a ratio, or unknown.")
    is_higher_better = serializers.BooleanField()
    full_nodes = serializers.FloatField(
        source="full", allow_null=True, help_text="Median of the hours, on nodes whose GPUs were all allocated."
    )
    other_nodes = serializers.FloatField(source="other", allow_null=True, help_text="Null: too few hours.")
    percent_worse = serializers.FloatField(allow_null=True, help_text="On full nodes. Negative: better there.")
    hours = serializers.IntegerField(
        help_text="Of 7 days, with 20 samples or more on full and on other nodes. A comparison needs 12."
    )
    hours_measured = serializers.IntegerField(source="measured")
    newest_hour = serializers.DateTimeField(
        source="newest", allow_null=True, help_text="End of the newest hour with a value. Null: none has one."
    )
    is_current = serializers.BooleanField(help_text="False: no value for three hours. How it is now is unknown.")
    trouble = serializers.CharField(help_text="Of the newest hour. Blank: none.")


class ClassServiceLevelSerializer(ServiceLevelFiguresSerializer):
    workload_class = serializers.ChoiceField([*CLASSES_MEASURED], help_text="By the kinds of the owners of its pods.")
    why_not = serializers.CharField(help_text="Why nothing is compared. Blank: it is compared.")


class ServiceLevelComparisonSerializer(ServiceLevelFiguresSerializer):
    classes = ClassServiceLevelSerializer(many=True, help_text="Each class by its own pods.")


class PlacementMeasuresSerializer(serializers.Serializer):
    stranded_gpus = serializers.FloatField(
        source="stranded", allow_null=True, help_text="Mean of 7 days. Null: no samples."
    )
    stranded_hours = serializers.IntegerField(help_text="Hourly samples of the mean.")
    full_nodes = HeatSerializer(source="full", help_text="Last 24 hours in which all GPUs of the node were allocated.")
    other_nodes = HeatSerializer(source="other")
    failures = FailureSerializer()
    mean_loss = serializers.FloatField(
        allow_null=True, help_text="GPU-hours that the failure of a node with GPUs costs now."
    )
    worst = NodeLossSerializer(allow_null=True, help_text="The node whose failure costs the most. Null: no GPU pods.")
    numa_refusals = serializers.IntegerField(help_text="Pods that the kubelet refused: no NUMA node had room.")
    service_level = ServiceLevelComparisonSerializer(allow_null=True, help_text="Null: the pool has none.")
    numa = NumaSerializer(
        allow_null=True, help_text="Null: not checked. No current NodeResourceTopology or ResourceSlice tells it."
    )
    nodes = serializers.IntegerField(help_text="Nodes with GPUs.")
    nodes_compared = serializers.IntegerField(source="compared", help_text="Of these, whose hours are compared.")


class PlacementAnswerSerializer(serializers.Serializer):
    placement = PlacementSerializer(allow_null=True, help_text="Null: the nodes or pods were never read.")
    measures = PlacementMeasuresSerializer(allow_null=True, help_text="Null: the nodes or pods were never read.")


class PoolPlacement(Edge):
    @extend_schema(responses=PlacementAnswerSerializer)
    def get(self, request, pool_id: int) -> Response:
        """Compares the running pods of the pool with its placement policy."""
        pool = self.load(Pool.objects.visible_to(self.user), pool_id)
        now = timezone.now()
        report, measures = placement_of_pool(pool, self.user, now=now), measures_of_pool(pool, self.user, now=now)
        return Response(PlacementAnswerSerializer({"placement": report, "measures": measures}).data)
