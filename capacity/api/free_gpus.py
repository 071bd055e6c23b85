"""The free GPUs of a pool or a cluster, as on its page."""

from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from capacity.free_gpus.free_gpu_history import DAYS_AT_MOST, history_of
from capacity.free_gpus.free_gpu_report import FreeGpuReport, free_gpus_of_cluster, free_gpus_of_pool
from capacity.free_gpus.stranded_gpus import DomainRoom, StrandedBy
from edges.rest import Asked, Edge
from fleet.models import Cluster, Pool
from people.rights import Permission, scope_of


class UsualPodSerializer(serializers.Serializer):
    gpus = serializers.IntegerField(help_text="Whole GPUs per pod. Pods of this size request the most GPUs in total.")
    cpu_m = serializers.IntegerField(help_text="Median CPU request per GPU, in millicores.")
    memory_bytes = serializers.IntegerField(help_text="Median memory request per GPU, in bytes.")


class StrandedSerializer(serializers.Serializer):
    cause = serializers.ChoiceField([cause.value for cause in StrandedBy])
    gpus = serializers.FloatField()
    nodes = serializers.IntegerField()


class FittingPodsSerializer(serializers.Serializer):
    gpus_of_each = serializers.IntegerField()
    pods = serializers.IntegerField(help_text="Pods of this size that fit now, if no pod of another size starts.")


class DomainRoomSerializer(serializers.Serializer):
    kind = serializers.CharField(help_text="`NVLink domain`, or the label that names racks or switches.")
    domains = serializers.IntegerField(help_text="Domains with free GPUs on nodes that accept pods.")
    unknown_nodes = serializers.IntegerField(source="unknown", help_text="Nodes with free GPUs without a known domain.")
    largest_gang = serializers.SerializerMethodField(
        help_text="GPUs of the largest gang in one domain, by the GPUs of each of its pods."
    )
    best = serializers.CharField(help_text="The domain with room for the largest gang.")

    @extend_schema_field(serializers.DictField(child=serializers.IntegerField()))
    def get_largest_gang(self, room: DomainRoom) -> dict[str, int]:
        return {str(size): gpus for size, gpus in room.largest.items()}


class FreeGpusSerializer(serializers.Serializer):
    """Free GPUs. `usable` and the GPUs of `stranded` add up to `free`. MIG slices count as parts of a GPU."""

    free = serializers.FloatField(source="found.free")
    usable = serializers.FloatField(
        source="found.usable", help_text="Free GPUs that the usual pod or pods with MIG slices can use."
    )
    stranded = serializers.SerializerMethodField(
        help_text="Unusable free GPUs by cause, in the order of the causes. A GPU counts only under its first cause."
    )
    fitting = serializers.SerializerMethodField()
    by_domain = DomainRoomSerializer(source="found.by_domain", many=True, help_text="Room for gangs in one domain.")
    usual_pod = UsualPodSerializer(source="found.usual")
    waiting_pods = serializers.IntegerField(source="waiting", help_text="GPU pods of the cluster without a node.")
    waiting_gpus = serializers.IntegerField(help_text="Whole GPUs that `waiting_pods` request.")
    shared_nodes = serializers.IntegerField(help_text="Nodes with shared GPUs. These GPUs are not counted.")

    @extend_schema_field(StrandedSerializer(many=True))
    def get_stranded(self, report: FreeGpuReport) -> list[dict]:
        return [{"cause": cause, "gpus": gpus, "nodes": nodes} for cause, gpus, nodes in report.found.parts]

    @extend_schema_field(FittingPodsSerializer(many=True))
    def get_fitting(self, report: FreeGpuReport) -> list[dict]:
        return [{"gpus_of_each": size, "pods": number} for size, number in report.found.pods.items()]


class FreeGpusAnswerSerializer(serializers.Serializer):
    free_gpus = FreeGpusSerializer(allow_null=True, help_text="Null: the nodes or pods of the cluster were never read.")


def _answer(report: FreeGpuReport | None) -> Response:
    return Response({"free_gpus": None if report is None else FreeGpusSerializer(report).data})


class PoolFreeGpus(Edge):
    @extend_schema(responses=FreeGpusAnswerSerializer)
    def get(self, request, pool_id: int) -> Response:
        """Returns the free GPUs of the pool, and which pods could use them now."""
        return _answer(free_gpus_of_pool(self.load(Pool.objects.visible_to(self.user), pool_id), self.user))


class ClusterFreeGpus(Edge):
    @extend_schema(responses=FreeGpusAnswerSerializer)
    def get(self, request, cluster_id: int) -> Response:
        """Returns the free GPUs of the cluster's visible nodes, and which pods could use them now."""
        return _answer(free_gpus_of_cluster(self.load(Cluster.objects.visible_to(self.user), cluster_id), self.user))


class FreeGpuHistoryAsked(Asked):
    days = serializers.IntegerField(min_value=1, max_value=DAYS_AT_MOST, default=14)


class FreeGpuSampleSerializer(serializers.Serializer):
    """Free GPUs at the end of an hour. `usable` and the parts of `stranded` add up to `free`."""

    hour = serializers.DateTimeField(help_text="End of the hour. Hours without a sample are left out.")
    free = serializers.FloatField()
    usable = serializers.FloatField()
    stranded = serializers.DictField(child=serializers.FloatField(), help_text="GPUs by cause.")


class FreeGpuHistorySerializer(serializers.Serializer):
    samples = FreeGpuSampleSerializer(many=True, help_text="Oldest first.")


class PoolFreeGpuHistory(Edge):
    @extend_schema(parameters=[FreeGpuHistoryAsked], responses=FreeGpuHistorySerializer)
    def get(self, request, pool_id: int) -> Response:
        """Returns the free and stranded GPUs of the pool over time, at most one sample an hour."""
        return self.answer(self.load(Pool.objects.visible_to(self.user), pool_id))

    def answer(self, of: Pool | Cluster) -> Response:
        asked = FreeGpuHistoryAsked(data=self.request.query_params.dict())
        asked.is_valid(raise_exception=True)
        samples = history_of(of, days=asked.validated_data["days"], now=timezone.now())
        return Response(FreeGpuHistorySerializer({"samples": samples}).data)


class ClusterFreeGpuHistory(PoolFreeGpuHistory):
    @extend_schema(parameters=[FreeGpuHistoryAsked], responses=FreeGpuHistorySerializer)
    def get(self, request, cluster_id: int) -> Response:
        """Returns the same of all nodes of a cluster. Needs a role on the whole cluster, or on the fleet."""
        if not scope_of(self.user, Permission.SEE).covers_cluster(cluster_id):
            raise Http404
        return self.answer(self.load(Cluster.objects.visible_to(self.user), cluster_id))
