"""Serializers of a node's GPU resources and their users."""

from rest_framework import serializers

from edges.rest import RowSerializer
from fleet.allocation.allocations import AllocationSource
from fleet.models import ExporterReading
from gpu.resources import ResourceKind, Vendor


class AmountsField(serializers.DictField):
    """Amounts by resource: {"nvidia.com/gpu": 8}."""

    child = serializers.IntegerField()


class ResourceSerializer(serializers.Serializer):
    """One resource of a node. Never add amounts of different kinds."""

    name = serializers.CharField()
    vendor = serializers.ChoiceField(choices=[(vendor.value, vendor.value) for vendor in Vendor], allow_null=True)
    kind = serializers.ChoiceField(
        choices=[(kind.value, kind.value) for kind in ResourceKind],
        help_text="whole: a GPU for one pod. slice: partitioned by hardware (MIG, AMD). share: one of several users. "
        "virtual: handed to virtual machines.",
    )
    profile = serializers.CharField(source="way.profile", help_text="Of the slice: 1g.10gb. Blank: a GPU.")
    sharing = serializers.CharField(
        source="way.sharing",
        help_text="time-slicing, mps, hami, memory (placed by units of it), shared (not known how). Blank: one user.",
    )
    replicas = serializers.IntegerField(
        source="way.replicas",
        allow_null=True,
        help_text="Users a GPU or slice may have. Null: not shared, or not known.",
    )
    expected = serializers.IntegerField(
        allow_null=True, help_text="The most that was seen while GPUs were partitioned and shared so. Null: never any."
    )
    capacity = serializers.IntegerField(allow_null=True, help_text="Null: the node does not name the resource.")
    allocatable = serializers.IntegerField(allow_null=True)
    requested = serializers.IntegerField(
        allow_null=True, help_text="By the pods bound to the node. Null: pods were never seen."
    )
    free = serializers.IntegerField(allow_null=True)
    missing = serializers.IntegerField(help_text="Expected, and not allocatable.")
    differences = serializers.ListField(
        child=serializers.CharField(), help_text="What is not as it should be, and why."
    )


class PodNameSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    namespace = serializers.CharField()
    name = serializers.CharField()


class AllocationSerializer(serializers.Serializer):
    pod = PodNameSerializer()
    resource = serializers.CharField()
    profile = serializers.CharField(help_text="Of its slice. Blank: it is on the whole GPU.")
    device = serializers.CharField(
        help_text="The UUID that its kubelet names, the DRA device, or by metrics the number of its slice."
    )
    claim = serializers.CharField(help_text="Blank: none; a device plugin gave it out.")
    reported_by = serializers.ChoiceField(
        source="source",
        choices=[(source.value, source.value) for source in AllocationSource],
        help_text="claim: DRA. kubelet: the status of the pod. scheduler: an annotation of the pod. metrics: the "
        "labels of the node's DCGM exporter. count: it asks for as many as its node ever had, and none is shared.",
    )
    seen_at = serializers.DateTimeField(
        allow_null=True, help_text="When its exporter was read. Null: told by a claim or a kubelet."
    )
    is_current = serializers.BooleanField(help_text="False: it was last seen there at `seen_at`, over 2 minutes ago.")
    only_looks = serializers.BooleanField(help_text="Access for administration: it takes the GPU from nobody.")


class UnplacedSerializer(serializers.Serializer):
    """The amount that a pod has on unknown GPUs."""

    pod = PodNameSerializer()
    resource = serializers.CharField(help_text="Blank: of a claim that is not seen.")
    number = serializers.IntegerField(allow_null=True)
    claim = serializers.CharField()


class ExporterSerializer(RowSerializer):
    """The last query of the node's DCGM exporter. Its devices are among `gpus`."""

    class Meta:
        model = ExporterReading
        fields = ("read_at", "tried_at", "refused", "refused_since")
