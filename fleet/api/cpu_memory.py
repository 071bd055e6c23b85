"""Serializers of CPU and memory of nodes, and of their requests."""

from rest_framework import serializers


class AmountSerializer(serializers.Serializer):
    """An amount. Null means unknown, not zero."""

    allocatable = serializers.IntegerField(allow_null=True, help_text="Allocatable amount. Null: no node reports it.")
    requested = serializers.IntegerField(
        allow_null=True, help_text="Amount that all pods request. Null: pods were never read."
    )
    tenants = serializers.IntegerField(allow_null=True, help_text="Amount that pods with or waiting for GPUs request.")
    operands = serializers.IntegerField(allow_null=True, help_text="Amount that pods of the GPU stack request.")
    others = serializers.IntegerField(allow_null=True, help_text="Amount that all other pods request.")
    free = serializers.IntegerField(
        allow_null=True,
        help_text="Allocatable minus requested amount. Negative: pods request more than is allocatable.",
    )


class CpuMemorySerializer(serializers.Serializer):
    """Requests of bound pods that are not finished, as the scheduler counts them."""

    cpu = AmountSerializer(help_text="CPU in millicores.")
    memory = AmountSerializer(help_text="Memory in bytes.")


class NodesCpuMemorySerializer(CpuMemorySerializer):
    nodes = serializers.IntegerField(allow_null=True)
    silent = serializers.IntegerField(allow_null=True, help_text="Nodes that report no allocatable CPU or memory.")


class ClusterCpuMemorySerializer(serializers.Serializer):
    gpu_nodes = NodesCpuMemorySerializer()
    other_nodes = NodesCpuMemorySerializer()
