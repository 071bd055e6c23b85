"""The gate of new nodes per pool. The nodes that it holds are cases with `is_new`."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Edge, Flat, Listing, RowSerializer
from fleet.api.serializers import RefSerializer
from fleet.models import Pool
from maintenance.new_node_settings import (
    GATE_TESTS,
    LONGEST_WANTED,
    MOST_WANTED,
    GateSettings,
    set_gate,
    settings_version,
)
from operations.test_jobs.node_tests import NODE_TESTS
from people.rights import Permission, require


class WantedField(serializers.ListField):
    """A list of labels or taints."""

    child = serializers.CharField(max_length=LONGEST_WANTED)

    def __init__(self, **given: Any) -> None:
        super().__init__(max_length=MOST_WANTED, required=False, default=list, **given)


class NewNodeGateSerializer(RowSerializer):
    """The gate of a pool. The id is the id of the pool."""

    cluster = RefSerializer()
    on_since = serializers.DateTimeField(allow_null=True, help_text="Nodes that join later are held. Null: off.")
    test = serializers.CharField(help_text="Key of the test workload. Blank: never set.")
    labels = serializers.ListField(child=serializers.CharField())
    taints = serializers.ListField(child=serializers.CharField())
    needs_person = serializers.BooleanField(help_text="A person releases a node that passed.")
    changed_by = serializers.CharField()
    version = serializers.CharField(help_text="Of the settings.")

    class Meta:
        model = Pool
        fields: ClassVar[tuple[str, ...]] = (
            "id", "name", "cluster", "on_since", "test", "labels", "taints", "needs_person", "changed_by", "version",
        )  # fmt: skip


class NewNodeGateRequest(Asked):
    is_on = serializers.BooleanField(help_text="Hold nodes that join from now on.")
    test = serializers.ChoiceField(choices=[(key, NODE_TESTS[key].title) for key in GATE_TESTS])
    labels = WantedField(help_text="key or key=value.")
    taints = WantedField(help_text="key:Effect or key=value:Effect.")
    needs_person = serializers.BooleanField(required=False, default=False)
    seen = serializers.CharField(
        required=False, default="", max_length=40, help_text="The version that you read. Refused if it changed since."
    )
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")


class ShownGate:
    def __init__(self, pool: Pool) -> None:
        row = getattr(pool, "new_node_gate", None)
        self.on_since = row.on_since if row else None
        self.test = row.test if row else ""
        self.labels = row.labels if row else []
        self.taints = row.taints if row else []
        self.needs_person = row is not None and row.needs_person
        self.changed_by = row.changed_by if row else ""
        self.version = settings_version(row)


class NewNodeGateEdge(Edge):
    def pools(self) -> QuerySet[Pool]:
        visible = Pool.objects.visible_to(self.user).select_related("cluster", "new_node_gate")
        return visible.order_by("cluster__name", "name")

    def answer(self, pool_id: int) -> Response:
        pool = self.load(self.pools(), pool_id)
        return Response(NewNodeGateSerializer(Flat(ShownGate(pool), pool)).data)


class NewNodeGateList(NewNodeGateEdge, Listing):
    """Lists the pools with their gate of new nodes."""

    serializer_class = NewNodeGateSerializer
    queryset = Pool.objects.none()

    def get_queryset(self) -> QuerySet[Pool]:
        return self.pools()

    def see(self, rows: Sequence[Pool]) -> Iterable[Flat]:
        return [Flat(ShownGate(pool), pool) for pool in rows]


class NewNodeGateDetail(NewNodeGateEdge):
    @extend_schema(responses=NewNodeGateSerializer)
    def get(self, request, pool_id: int) -> Response:
        return self.answer(pool_id)


class NewNodeGateSettings(NewNodeGateEdge):
    http_method_names = ["post", "options"]

    @extend_schema(request=NewNodeGateRequest, responses=NewNodeGateSerializer)
    def post(self, request, pool_id: int) -> Response:
        """Sets the gate. Nodes that joined before are not held, and nodes that are held finish their checks."""
        pool = self.load(self.pools(), pool_id)
        where = f"cluster {pool.cluster.name}"
        require(self.user, Permission.ADMINISTER, cluster_id=pool.cluster_id, where=where)
        asked = self.read(NewNodeGateRequest)
        given = {name: asked.pop(name) for name in ("reason", "seen")}
        set_gate(pool, GateSettings(**asked), actor=self.user.get_username(), now=timezone.now(), **given)
        return self.answer(pool_id)
