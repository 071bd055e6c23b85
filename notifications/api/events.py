"""Domain events of the clusters that the caller sees, newest first."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from edges.rest import Listing, RowSerializer
from fleet.api.serializers import RefSerializer
from fleet.event_kinds import EVENT_KINDS
from fleet.history.event_pages import page_of_event
from fleet.models import DomainEvent
from health.api.saved_views import SavedViewDetail, SavedViewList
from notifications.events import EVENT_VIEWS, EventFilters


class DomainEventSerializer(RowSerializer):
    cluster = RefSerializer()
    kind = serializers.ChoiceField(choices=sorted(EVENT_KINDS))
    severity = serializers.CharField(help_text="critical, warning or note. Blank: written by an earlier version.")
    object = serializers.CharField(source="key", help_text="Key of its object: `finding/12`, `plan/7/stage/3`.")
    node = serializers.CharField(source="node_name", help_text="Name of its node. Blank: no node.")
    actor = serializers.CharField(help_text="Who made the change. Blank: nobody, as when a finding opens.")
    sentence = serializers.CharField()
    facts = serializers.DictField(help_text="The facts of its kind, as they were then.")
    page = serializers.SerializerMethodField(help_text="Address of the object's page. Blank: of a later version.")

    class Meta:
        model = DomainEvent
        fields = ("id", "at", "cluster", "kind", "severity", "object", "node", "actor", "sentence", "facts", "page")

    @extend_schema_field(serializers.CharField())
    def get_page(self, event: DomainEvent) -> Any:
        return page_of_event(event)


class DomainEventList(Listing):
    """Lists events, newest first. Events about nodes of a pool are visible with the pool, others with the cluster.

    With a cursor, `count` ends at 10,000.
    """

    count_at_most = 10_000
    serializer_class = DomainEventSerializer
    filterset_class = EventFilters
    queryset = DomainEvent.objects.none()

    def get_queryset(self) -> QuerySet[DomainEvent]:
        return DomainEvent.objects.visible_to(self.user).select_related("cluster").order_by("-pk")


class EventViewList(SavedViewList):
    """Lists the caller's saved views of the list of events by name."""

    table = EVENT_VIEWS


class EventViewDetail(SavedViewDetail):
    table = EVENT_VIEWS
