"""The disruption ledger: unavailable nodes, and the limits of each zone, rack or NVLink domain."""

import django_filters as filters
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Edge, Listing, RowSerializer
from fleet.api.serializers import RefSerializer
from fleet.models import Cluster
from operations.failure_domains import DomainKind
from operations.models import Disruption
from people.rights import require
from rollouts.commands.domain_budgets import EACH, LONGEST_LABEL, MAY, MOST, BudgetShown, budgets_of, set_budget
from rollouts.models.plan import plan_of_mark

DOMAIN_KINDS = [(kind.value, words) for kind, words in EACH.items()]


class DisruptionSerializer(RowSerializer):
    cluster = RefSerializer()
    plan = serializers.SerializerMethodField(help_text="Id of the plan that owns the entry. Null: another owner.")
    taken_by = serializers.CharField(help_text="Name of the owner, such as plan-7 or operation-3.")
    domains = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="Failure domains of the node when it was released, as kind and name. The name of a pool is its id.",
    )

    class Meta:
        model = Disruption
        fields = ("id", "cluster", "plan", "taken_by", "node_name", "node_uid", "domains", "taken_at", "ended_at")

    def get_plan(self, row: Disruption) -> int | None:
        return plan_of_mark(row.taken_by)


class DisruptionFilters(filters.FilterSet):
    cluster = filters.CharFilter(field_name="cluster__name", max_length=63, label="Name of the cluster.")
    is_in_force = filters.BooleanFilter(field_name="ended_at", lookup_expr="isnull", label="true: unavailable now.")


class DisruptionList(Listing):
    """Lists nodes that are or were unavailable, one entry from each release until the node was back."""

    serializer_class = DisruptionSerializer
    filterset_class = DisruptionFilters
    queryset = Disruption.objects.none()

    def get_queryset(self) -> QuerySet[Disruption]:
        visible = Disruption.objects.visible_to(self.user).select_related("cluster")
        return visible.order_by("cluster__name", "taken_at", "pk")


class DomainBudgetSerializer(serializers.Serializer):
    kind = serializers.ChoiceField(choices=DOMAIN_KINDS)
    max_unavailable = serializers.IntegerField(allow_null=True, help_text="Nodes in each domain. Null: no limit.")
    rack_label = serializers.CharField(source="label", help_text="For racks: the node label with the rack's name.")
    by = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField()
    sentence = serializers.CharField()


class DomainBudgetRequest(Asked):
    kind = serializers.ChoiceField(choices=DOMAIN_KINDS)
    max_unavailable = serializers.IntegerField(
        min_value=1,
        max_value=MOST,
        allow_null=True,
        help_text="Number of nodes per domain, including broken nodes. Null: no limit.",
    )
    rack_label = serializers.CharField(
        source="label",
        max_length=LONGEST_LABEL,
        allow_blank=True,
        required=False,
        default="",
        help_text="The node label with the rack's name. Only for racks.",
    )
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")


class DomainBudgets(Edge):
    def cluster(self, cluster_id: int) -> Cluster:
        return self.load(Cluster.objects.visible_to(self.user), cluster_id)

    def shown(self, cluster: Cluster) -> Response:
        found: list[BudgetShown] = budgets_of(cluster)
        return Response(DomainBudgetSerializer(found, many=True).data)

    @extend_schema(responses=DomainBudgetSerializer(many=True))
    def get(self, request, cluster_id: int) -> Response:
        """Lists one entry per kind, set or not. A pool's own limit is its `max_unavailable`."""
        return self.shown(self.cluster(cluster_id))

    @extend_schema(request=DomainBudgetRequest, responses=DomainBudgetSerializer(many=True))
    def post(self, request, cluster_id: int) -> Response:
        """Sets a budget for all plans from now on. Nodes that are unavailable stay unavailable."""
        cluster = self.cluster(cluster_id)
        require(self.user, MAY, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        asked = self.read(DomainBudgetRequest)
        kind = DomainKind(asked.pop("kind"))
        set_budget(cluster, kind, actor=self.user.username, now=timezone.now(), **asked)
        return self.shown(cluster)
