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
        help_text="whole: a GPU for one pod. slice: a hardware partition of a GPU (MIG, AMD). "
        "share: a part of a GPU or slice with several users. virtual: a GPU for virtual machines.",
    )
    profile = serializers.CharField(
        source="way.profile", help_text="Profile of the slice, such as 1g.10gb. Blank: a whole GPU."
    )
    sharing = serializers.CharField(
        source="way.sharing",
        help_text="time-slicing, mps, hami, memory (by units of memory) or shared (unknown method). Blank: one user.",
    )
    replicas = serializers.IntegerField(
        source="way.replicas",
        allow_null=True,
        help_text="Users that one GPU or slice may have. Null: not shared, or unknown.",
    )
    expected = serializers.IntegerField(
        allow_null=True, help_text="Highest amount observed under this layout. Null: no amount was observed."
    )
    capacity = serializers.IntegerField(allow_null=True, help_text="Null: the node does not report the resource.")
    allocatable = serializers.IntegerField(allow_null=True)
    requested = serializers.IntegerField(
        allow_null=True, help_text="Amount that the node's pods request. Null: pods were never read."
    )
    free = serializers.IntegerField(allow_null=True)
    missing = serializers.IntegerField(help_text="Expected units that are not allocatable.")
    differences = serializers.ListField(
        child=serializers.CharField(), help_text="Sentences about deviations, with the cause."
    )


class PodNameSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    namespace = serializers.CharField()
    name = serializers.CharField()


class AllocationSerializer(serializers.Serializer):
    pod = PodNameSerializer()
    resource = serializers.CharField()
    profile = serializers.CharField(help_text="Profile of the pod's slice, such as 1g.10gb. Blank: the whole GPU.")
    device = serializers.CharField(
        help_text="UUID from the kubelet, name of the DRA device, or number of the slice from metrics."
    )
    claim = serializers.CharField(help_text="Name of the ResourceClaim. Blank: a device plugin allocated the GPU.")
    reported_by = serializers.ChoiceField(
        source="source",
        choices=[(source.value, source.value) for source in AllocationSource],
        help_text="claim: DRA. kubelet: the status of the pod. scheduler: an annotation of the pod. metrics: the "
        "labels of the node's exporter. count: the pod requests all GPUs that the node ever had, and no GPU is shared.",
    )
    seen_at = serializers.DateTimeField(
        allow_null=True, help_text="Time at which the exporter was read. Null: another source."
    )
    is_current = serializers.BooleanField(
        help_text="False: the pod was last observed on the GPU at `seen_at`, over 2 minutes ago."
    )
    only_looks = serializers.BooleanField(
        help_text="True: administrative access. The GPU stays available to other pods."
    )


class UnplacedSerializer(serializers.Serializer):
    """The amount that a pod has on unknown GPUs."""

    pod = PodNameSerializer()
    resource = serializers.CharField(help_text="Name of the resource. Blank: from an unknown claim.")
    number = serializers.IntegerField(allow_null=True)
    claim = serializers.CharField()


class ExporterSerializer(RowSerializer):
    """The last query of the node's DCGM exporter. Its devices are among `gpus`."""

    class Meta:
        model = ExporterReading
        fields = ("read_at", "tried_at", "refused", "refused_since")
