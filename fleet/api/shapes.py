"""Shapes that several endpoints share."""

from rest_framework import serializers

from fleet.freshness import Freshness


class Ref(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()


class FreshnessShape(serializers.Serializer):
    """How old the rows of one kind are, and whether they are the cluster's at all."""

    kind = serializers.CharField()
    state = serializers.ChoiceField(choices=[(state.value, state.value) for state in Freshness])
    heard_at = serializers.DateTimeField(allow_null=True)
    age_s = serializers.FloatField(allow_null=True, min_value=0)
    sentence = serializers.CharField()


class VersionCountShape(serializers.Serializer):
    version = serializers.CharField(help_text="Blank: no node has said.")
    nodes = serializers.IntegerField()


class TallyShape(serializers.Serializer):
    """Counts of GPU nodes (`nodes` counts all). Null where nobody knows, which is not zero.

    `gpus_…` count whole GPUs. What GPUs are cut into (slices) and what several pods share (shares) is counted apart:
    never add the three up.
    """

    nodes = serializers.IntegerField(allow_null=True)
    gpu_nodes = serializers.IntegerField(allow_null=True)
    ready = serializers.IntegerField(allow_null=True)
    not_ready = serializers.IntegerField(allow_null=True)
    readiness_unknown = serializers.IntegerField(allow_null=True, help_text="The kubelet stopped reporting.")
    unschedulable = serializers.IntegerField(allow_null=True)
    held = serializers.IntegerField(allow_null=True)
    gpus_expected = serializers.IntegerField(allow_null=True)
    gpus_allocatable = serializers.IntegerField(allow_null=True)
    gpus_allocated = serializers.IntegerField(allow_null=True)
    gpus_missing = serializers.IntegerField(allow_null=True)
    slices_expected = serializers.IntegerField(allow_null=True, help_text="MIG slices and partitions, of any size.")
    slices_allocatable = serializers.IntegerField(allow_null=True)
    slices_allocated = serializers.IntegerField(allow_null=True)
    slices_missing = serializers.IntegerField(allow_null=True)
    shares_expected = serializers.IntegerField(
        allow_null=True, help_text="Of GPUs or slices with several users (time-slicing, MPS, HAMi, …)."
    )
    shares_allocatable = serializers.IntegerField(allow_null=True)
    shares_allocated = serializers.IntegerField(allow_null=True)
    shares_missing = serializers.IntegerField(allow_null=True)
    driver_versions = VersionCountShape(many=True)
