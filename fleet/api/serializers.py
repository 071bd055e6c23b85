"""Serializers shared by several endpoints."""

from rest_framework import serializers

from fleet.allocation.physical import by_use
from fleet.freshness.kinds import Freshness
from gpu.resources import Uses


class RefSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()


class FreshnessSerializer(serializers.Serializer):
    """The age of the rows of one kind, and whether they are known at all."""

    kind = serializers.CharField()
    state = serializers.ChoiceField(choices=[(state.value, state.value) for state in Freshness])
    last_seen_at = serializers.DateTimeField(allow_null=True)
    age_s = serializers.FloatField(allow_null=True, min_value=0)
    sentence = serializers.CharField()


class VersionCountSerializer(serializers.Serializer):
    version = serializers.CharField(help_text="Driver version. Blank: unknown.")
    nodes = serializers.IntegerField()


class UsesSerializer(serializers.Serializer):
    """Physical GPUs by use. Each GPU has exactly one use, so the numbers add up."""

    whole = serializers.IntegerField(help_text="GPUs with one user each.")
    mig = serializers.IntegerField(help_text="GPUs partitioned by NVIDIA's MIG. The slices may be shared.")
    partitioned = serializers.IntegerField(help_text="GPUs partitioned by AMD's driver.")
    time_slicing = serializers.IntegerField()
    mps = serializers.IntegerField()
    shared = serializers.IntegerField(help_text="GPUs shared in another way (HAMi, by memory), or in an unknown way.")
    virtual = serializers.IntegerField(help_text="GPUs for virtual machines.")
    not_offered = serializers.IntegerField(help_text="GPUs that a label counts and that are offered to no pod.")

    def to_representation(self, uses: Uses) -> dict[str, int]:
        return by_use(uses)


AWAY = "Units unavailable while the MIG manager changes the layout. Expected = allocatable + missing + away."


class TallySerializer(serializers.Serializer):
    """Counts of GPU nodes (`nodes` counts all). Null means unknown, not zero.

    `physical_gpus` counts physical GPUs, `gpus_…` count whole GPUs. Slices are parts of a GPU, and shares are for
    several pods on one GPU. Never add GPUs, slices and shares.
    """

    nodes = serializers.IntegerField(allow_null=True)
    gpu_nodes = serializers.IntegerField(allow_null=True)
    ready = serializers.IntegerField(allow_null=True)
    not_ready = serializers.IntegerField(allow_null=True)
    readiness_unknown = serializers.IntegerField(
        allow_null=True, help_text="GPU nodes with a kubelet that stopped reporting."
    )
    unschedulable = serializers.IntegerField(allow_null=True)
    held = serializers.IntegerField(allow_null=True)
    physical_gpus = serializers.IntegerField(
        allow_null=True, help_text="Physical GPUs: the sum of the largest number that each node ever had."
    )
    physical_gpus_by_use = UsesSerializer(allow_null=True, help_text="Physical GPUs by use. Each GPU counts once.")
    uncounted_nodes = serializers.IntegerField(
        allow_null=True, help_text="GPU nodes with an unknown number of GPUs. `physical_gpus` omits these nodes."
    )
    gpus_expected = serializers.IntegerField(
        source="gpus.expected", allow_null=True, help_text="Expected whole GPUs. All `gpus_…` count whole GPUs."
    )
    gpus_allocatable = serializers.IntegerField(source="gpus.allocatable", allow_null=True)
    gpus_allocated = serializers.IntegerField(
        source="gpus.allocated",
        allow_null=True,
        help_text="Allocatable GPUs that pods have. A pod's GPU that the node lost counts as missing.",
    )
    gpus_missing = serializers.IntegerField(source="gpus.missing", allow_null=True)
    gpus_away = serializers.IntegerField(source="gpus.away", allow_null=True, help_text=AWAY)
    slices_expected = serializers.IntegerField(
        source="slices.expected", allow_null=True, help_text="Expected MIG slices and partitions of any size."
    )
    slices_allocatable = serializers.IntegerField(source="slices.allocatable", allow_null=True)
    slices_allocated = serializers.IntegerField(source="slices.allocated", allow_null=True)
    slices_missing = serializers.IntegerField(source="slices.missing", allow_null=True)
    slices_away = serializers.IntegerField(source="slices.away", allow_null=True, help_text=AWAY)
    shares_expected = serializers.IntegerField(
        source="shares.expected",
        allow_null=True,
        help_text="Expected shares of GPUs or slices with several users (time-slicing, MPS, HAMi, …).",
    )
    shares_allocatable = serializers.IntegerField(source="shares.allocatable", allow_null=True)
    shares_allocated = serializers.IntegerField(source="shares.allocated", allow_null=True)
    shares_missing = serializers.IntegerField(source="shares.missing", allow_null=True)
    shares_away = serializers.IntegerField(source="shares.away", allow_null=True, help_text=AWAY)
    driver_versions = VersionCountSerializer(many=True)
