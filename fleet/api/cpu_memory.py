"""Serializers of CPU and memory of nodes, and of their requests."""

from rest_framework import serializers


class AmountSerializer(serializers.Serializer):
    """An amount. Null means unknown, not zero."""

    allocatable = serializers.IntegerField(allow_null=True, help_text="Null: the node reports none.")
    requested = serializers.IntegerField(allow_null=True, help_text="By all pods. Null: pods were never seen.")
    tenants = serializers.IntegerField(allow_null=True, help_text="By pods that hold or want GPUs.")
    operands = serializers.IntegerField(allow_null=True, help_text="By pods of the GPU stack.")
    others = serializers.IntegerField(allow_null=True, help_text="By every other pod.")
    free = serializers.IntegerField(allow_null=True, help_text="Below 0: more is requested than there is.")


class CpuMemorySerializer(serializers.Serializer):
    """Requests of bound pods that are not finished, as the scheduler counts them."""

    cpu = AmountSerializer(help_text="In millicores.")
    memory = AmountSerializer(help_text="In bytes.")


class NodesCpuMemorySerializer(CpuMemorySerializer):
    nodes = serializers.IntegerField(allow_null=True)
    silent = serializers.IntegerField(allow_null=True, help_text="Nodes that report no allocatable CPU or memory.")


class ClusterCpuMemorySerializer(serializers.Serializer):
    gpu_nodes = NodesCpuMemorySerializer()
    other_nodes = NodesCpuMemorySerializer()
