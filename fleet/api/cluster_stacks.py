"""The GPU stack of a cluster: operands, sharing and MIG configurations, Dynamic Resource Allocation, quotas on GPUs."""

from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Edge
from fleet.api.serializers import FreshnessSerializer
from fleet.cluster_stack import CARDS, config_cards, dra_card, operand_lines, quota_card
from fleet.freshness.cluster import load_cluster_freshness
from fleet.freshness.kinds import Freshness, never_listed
from fleet.models import Cluster, DriverObject, Operand
from kube.resources import (
    DAEMON_SETS,
    RESOURCE_CLAIMS,
)
from people.rights import Permission, require

KINDS = (DAEMON_SETS, *(kind for card in ("configs", "dra", "quotas") for kind in CARDS[card]))


class ClusterOperandSerializer(serializers.Serializer):
    """A DaemonSet of the GPU stack."""

    operand = serializers.CharField(source="operand.operand")
    title = serializers.CharField()
    namespace = serializers.CharField(source="operand.namespace")
    name = serializers.CharField(source="operand.name")
    version = serializers.CharField(help_text="Version of the image. Blank: unknown.")
    owner = serializers.CharField(help_text="Kind and name of its owner. Blank: none.")
    desired = serializers.IntegerField(source="operand.desired")
    ready = serializers.IntegerField(source="operand.ready")
    updated = serializers.IntegerField(source="operand.updated", help_text="Pods of the newest template.")
    sentence = serializers.CharField(source="word")


class ConfigEntrySerializer(serializers.Serializer):
    name = serializers.CharField()
    text = serializers.CharField(help_text="As written. Blank: the entry is missing.")
    nodes = serializers.IntegerField(help_text="Nodes that select the entry.")
    is_missing = serializers.BooleanField(help_text="Nodes select it, and the ConfigMap does not have it.")


class ConfigSerializer(serializers.Serializer):
    """A ConfigMap of the device plugin or the MIG manager, with the nodes that select its entries."""

    purpose = serializers.CharField(source="title", help_text="Sharing or MIG.")
    config = serializers.CharField(
        source="config.name", allow_null=True, default=None, help_text="Null: no known ConfigMap has the entries."
    )
    named = serializers.CharField(help_text="The ConfigMap that the ClusterPolicy names. Blank: none.")
    label = serializers.CharField(help_text="The label by which nodes select an entry.")  # type: ignore[assignment]
    entries = ConfigEntrySerializer(source="lines", many=True)
    nodes_without_choice = serializers.IntegerField(source="unpicked", help_text="Nodes that select no entry.")


class DraClassSerializer(serializers.Serializer):
    name = serializers.CharField()
    selectors = serializers.ListField(child=serializers.CharField(), help_text="CEL that a device must satisfy.")
    extended_resource_name = serializers.CharField(help_text="Blank: none.")


class DraDriverSerializer(serializers.Serializer):
    driver = serializers.CharField()
    slices = serializers.IntegerField()
    nodes = serializers.IntegerField()
    incomplete_pools = serializers.IntegerField(
        help_text="Pools whose driver reports another number of slices than exist."
    )


class DraSerializer(serializers.Serializer):
    """Dynamic Resource Allocation. An empty list may mean that the kind was never read; see `freshness`."""

    classes = DraClassSerializer(many=True)
    drivers = DraDriverSerializer(many=True)
    claims = serializers.IntegerField(allow_null=True, help_text="Null: ResourceClaims were never read.")
    allocated_claims = serializers.IntegerField(allow_null=True, help_text="Null: ResourceClaims were never read.")


class QuotaSerializer(serializers.Serializer):
    namespace = serializers.CharField()
    name = serializers.CharField()
    resource = serializers.CharField()
    used = serializers.CharField(help_text="A Kubernetes quantity. Blank: unknown.")
    hard = serializers.CharField(help_text="A Kubernetes quantity.")
    is_full = serializers.BooleanField()


class LimitSerializer(serializers.Serializer):
    namespace = serializers.CharField(source="0.namespace")
    name = serializers.CharField(source="0.name")
    text = serializers.CharField(source="1")


class ClusterStackSerializer(serializers.Serializer):
    """The GPU stack as the page of the cluster shows it, with the age of each kind."""

    operands = ClusterOperandSerializer(many=True)
    configs = ConfigSerializer(many=True)
    dra = DraSerializer()
    quotas = QuotaSerializer(many=True, help_text="Quotas on GPUs, full ones first.")
    limits = LimitSerializer(many=True, help_text="LimitRanges on GPUs.")
    more_quotas = serializers.IntegerField(help_text="Quotas and limits that are not listed.")
    freshness = FreshnessSerializer(many=True)


class ClusterStackDetail(Edge):
    @extend_schema(responses=ClusterStackSerializer)
    def get(self, request, cluster_id: int) -> Response:
        """Returns the GPU stack of a cluster. The caller must see the whole cluster."""
        cluster = self.load(Cluster.objects.visible_to(self.user), cluster_id)
        require(self.user, Permission.SEE, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        return Response(ClusterStackSerializer(_stack(cluster, now=timezone.now())).data)


def _stack(cluster: Cluster, *, now: datetime) -> dict[str, Any]:
    quotas, dra = quota_card(cluster.pk), dra_card(cluster.pk)
    by_kind = load_cluster_freshness(cluster, now=now).by_kind
    ages = {kind: by_kind.get(kind.name) or never_listed(kind.name) for kind in KINDS}
    operands = ages[DAEMON_SETS]
    knows_claims = ages[RESOURCE_CLAIMS].is_known
    return {
        "operands": operand_lines(
            list(Operand.objects.filter(cluster=cluster)),
            as_of=None if operands.state is Freshness.LIVE else operands.last_seen_at,
            now=now,
        ),
        "configs": config_cards(cluster.pk, list(DriverObject.objects.filter(cluster=cluster))),
        "dra": {
            "classes": dra.classes,
            "drivers": dra.drivers,
            "claims": dra.claims if knows_claims else None,
            "allocated_claims": dra.allocated if knows_claims else None,
        },
        "quotas": quotas.quotas,
        "limits": quotas.limits,
        "more_quotas": quotas.left,
        "freshness": list(ages.values()),
    }
