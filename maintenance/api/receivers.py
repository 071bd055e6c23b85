"""Receivers of signed repair requests, of a cluster or of one pool. No answer contains a secret."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.rest import Asked, Edge, Listing, RowSerializer
from fleet.api.serializers import RefSerializer
from fleet.models import Cluster, Pool
from maintenance.models import RepairReceiver
from maintenance.receivers import REPAIR_SECRETS, receivers_of, remove_receiver, set_receiver
from people.rights import Permission, require, require_somewhere, scope_of

KEY_MOST = 2**53


class ReceiverSerializer(RowSerializer):
    cluster = RefSerializer()
    pool = RefSerializer(allow_null=True, help_text="Null: all nodes of the cluster whose pool has no receiver.")
    secret_from = serializers.CharField(allow_null=True, help_text="The place of its secret. Null: only admins see it.")

    class Meta:
        model = RepairReceiver
        fields = ("id", "cluster", "pool", "address", "secret_from", "ca_file", "changed_by", "changed_at")

    def to_representation(self, row: RepairReceiver) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(row)
        if not self.context["scope"].covers_cluster(row.cluster_id):
            shown["secret_from"] = None
        return shown


class ReceiverRequest(Asked):
    cluster = serializers.IntegerField(min_value=1, max_value=KEY_MOST, help_text="Its id.")
    pool = serializers.IntegerField(
        min_value=1, max_value=KEY_MOST, required=False, default=None, allow_null=True,
        help_text="Id of a pool of this cluster. Null: every node whose pool has no receiver.",
    )  # fmt: skip
    address = serializers.CharField(max_length=300, help_text="https address that gets the POST.")
    secret_from = serializers.CharField(
        max_length=300, help_text=f"The place of its signing secret, never the secret: {REPAIR_SECRETS.places}."
    )
    ca_file = serializers.CharField(
        max_length=300, required=False, default="", allow_blank=True,
        help_text="A CA file in the folder QUARTERDECK_SECRETS_DIR.",
    )  # fmt: skip


class ReceiverEdge(Edge):
    def context(self) -> dict[str, Any]:
        return {"scope": scope_of(self.user, Permission.ADMINISTER)}


class ReceiverList(ReceiverEdge, Listing):
    """Lists the receivers of repair requests."""

    serializer_class = ReceiverSerializer
    queryset = RepairReceiver.objects.none()

    def get_queryset(self) -> QuerySet[RepairReceiver]:
        return receivers_of(self.user)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), **self.context()}

    @extend_schema(request=ReceiverRequest, responses=ReceiverSerializer)
    def post(self, request) -> Response:
        """Sets the receiver of a pool or a cluster. It replaces the one before."""
        require_somewhere(self.user, Permission.ADMINISTER)
        asked = self.read(ReceiverRequest)
        cluster = self.load(Cluster.objects.visible_to(self.user), asked.pop("cluster"))
        require(self.user, Permission.ADMINISTER, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        key = asked.pop("pool")
        pool = self.load(Pool.objects.visible_to(self.user), key) if key is not None else None
        row = set_receiver(cluster, pool, actor=self.user.get_username(), now=timezone.now(), **asked)
        return Response(ReceiverSerializer(row, context=self.context()).data)


class ReceiverDetail(ReceiverEdge):
    @extend_schema(responses={204: None})
    def delete(self, request, receiver_id: int) -> Response:
        """Removes a receiver. Requests that it has stay open until their deadline."""
        row = self.load(receivers_of(self.user), receiver_id)
        require(self.user, Permission.ADMINISTER, cluster_id=row.cluster_id, where=f"cluster {row.cluster.name}")
        remove_receiver(row, actor=self.user.get_username(), now=timezone.now())
        return Response(status=204)
