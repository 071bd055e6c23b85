"""CPU and memory: what nodes have for pods, and who requests how much of it."""

from rest_framework import serializers


class AmountShape(serializers.Serializer):
    """Null where nobody knows, which is not zero."""

    allocatable = serializers.IntegerField(allow_null=True, help_text="Null: the node reports none.")
    requested = serializers.IntegerField(allow_null=True, help_text="By all pods. Null: pods were never seen.")
    tenants = serializers.IntegerField(allow_null=True, help_text="By pods that hold or want GPUs.")
    operands = serializers.IntegerField(allow_null=True, help_text="By pods of the GPU stack.")
    others = serializers.IntegerField(allow_null=True, help_text="By every other pod.")
    free = serializers.IntegerField(allow_null=True, help_text="Below 0: more is requested than there is.")


class CpuMemoryShape(serializers.Serializer):
    """Requested as the scheduler counts it, by pods that are bound and not done."""

    cpu = AmountShape(help_text="In millicores.")
    memory = AmountShape(help_text="In bytes.")


class NodesCpuMemoryShape(CpuMemoryShape):
    nodes = serializers.IntegerField(allow_null=True)
    silent = serializers.IntegerField(allow_null=True, help_text="Nodes that report no allocatable CPU or memory.")


class ClusterCpuMemoryShape(serializers.Serializer):
    gpu_nodes = NodesCpuMemoryShape()
    other_nodes = NodesCpuMemoryShape()
