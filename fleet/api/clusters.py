from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from edges.concurrent_edits import LENGTH
from edges.rest import Asked, Edge, Flat, Listing, RowSerializer
from fleet.api.cpu_memory import ClusterCpuMemorySerializer
from fleet.api.serializers import FreshnessSerializer, TallySerializer
from fleet.clusters.acceptance import accept, try_now
from fleet.drivers.cluster_drivers import Drivers, read_drivers
from fleet.drivers.mode import DriverSetBy
from fleet.freshness.observation_state import ObservationState
from fleet.models import ApprovalRule, Cluster, ExporterRound, Observer
from fleet.models.bookmark import UNREAD_MOST
from fleet.pools.approval_rules import mark_of, set_approval
from fleet.queries import ClusterRow, see_clusters, unread_of
from people.rights import Permission, Scope, require, scope_of

MODES = [(mode.value, mode.value) for mode in DriverSetBy]
ADMINS = "Workers connect to the cluster with this setting. Null: the caller is not an admin of the cluster."


class ObservationSerializer(serializers.Serializer):
    """The observation state of a cluster: state, sentence and action, as on its page."""

    state = serializers.ChoiceField(choices=[(state.value, state.value) for state in ObservationState])
    since = serializers.DateTimeField(allow_null=True, help_text="Start of this state. Null: the cluster is live.")
    last_seen_at = serializers.DateTimeField(allow_null=True, help_text="Null: the cluster was never observed.")
    sentence = serializers.CharField(help_text="Explanation of the state. Blank: the cluster is live.")
    action = serializers.CharField(help_text="Recommended action. Blank: no action needed.")
    unwatched_since = serializers.DateTimeField(
        allow_null=True,
        help_text=(
            "Time since which no worker watches the cluster. Null: a worker watches it, or the next attempt is not due."
        ),
    )


class ClusterSerializer(RowSerializer):
    row = "cluster"
    counts = TallySerializer(source="tally")
    cpu_memory = ClusterCpuMemorySerializer(
        source="tally.cpu_memory", help_text="CPU and memory of the nodes that the caller may see."
    )
    observation = ObservationSerializer(source="freshness.observation")
    freshness = FreshnessSerializer(source="kinds", many=True)
    kubeconfig = serializers.SerializerMethodField(help_text=ADMINS)
    context = serializers.SerializerMethodField(help_text=ADMINS)  # type: ignore[assignment]

    class Meta:
        model = Cluster
        fields = (
            "id", "name", "uid", "foreign_uid", "mode", "approval", "server_version", "added_at", "counts",
            "cpu_memory", "observation", "freshness", "kubeconfig", "context",
        )  # fmt: skip

    def get_kubeconfig(self, cluster: Flat) -> str | None:
        return cluster.kubeconfig if self._administered.covers_cluster(cluster.pk) else None

    def get_context(self, cluster: Flat) -> str | None:
        return cluster.context if self._administered.covers_cluster(cluster.pk) else None

    @cached_property
    def _administered(self) -> Scope:
        return scope_of(self.context["request"].user, Permission.ADMINISTER)  # type: ignore[index] # not the field


class OperatorSerializer(serializers.Serializer):
    """The running GPU Operator, and the source of its version."""

    version = serializers.CharField(help_text="Version of the operator. Blank: unknown.")
    read_from = serializers.CharField()
    disagreement = serializers.CharField(
        help_text="Another source with a different version. Blank: no source disagrees."
    )


class DriverModeSerializer(serializers.Serializer):
    """The controller of driver versions in this cluster."""

    mode = serializers.ChoiceField(choices=MODES)
    title = serializers.CharField()
    sentences = serializers.ListField(child=serializers.CharField(), help_text="Explanation of the mode.")
    problem = serializers.CharField(help_text="Problem with the mode. Blank: no problem.")


class UnreadSerializer(serializers.Serializer):
    """An object that Quarterdeck cannot decode."""

    kind = serializers.CharField()
    name = serializers.CharField()
    reason = serializers.CharField()


@dataclass(frozen=True)
class ClusterInDetail(ClusterRow):
    """One cluster with all details."""

    drivers: Drivers
    unread: Sequence[Mapping[str, str]]  # kind, name and reason


class ObserverSerializer(RowSerializer):
    """The observer of the cluster: its lease and its lag."""

    class Meta:
        model = Observer
        fields = ("epoch", "owner", "lease_until", "batch", "batch_at", "lag_ms", "behind_since", "clock_skew_s")
        extra_kwargs = {"behind_since": {"help_text": "Null: the observer keeps up, or no worker watches the cluster."}}


class ExportersSerializer(RowSerializer):
    """The state of queries to DCGM exporters."""

    class Meta:
        model = ExporterRound
        fields = ("state", "state_since", "message", "exporters", "answered", "read_at")
        extra_kwargs = {"message": {"help_text": "Blank: no message, or the caller does not see the whole cluster."}}


class ClusterDetailSerializer(ClusterSerializer):
    observer = ObserverSerializer(allow_null=True, help_text="Null: no worker ever watched the cluster.")
    exporters = ExportersSerializer(
        source="exporter_round", allow_null=True, help_text="Null: the exporters were never queried."
    )
    operator = OperatorSerializer(source="drivers.operator")
    driver_mode = DriverModeSerializer(source="drivers.mode")
    unread = UnreadSerializer(
        many=True,
        help_text=f"Unreadable objects, at most {UNREAD_MOST} per kind. "
        "Empty if the caller does not see the whole cluster.",
    )
    compatibility = serializers.HyperlinkedIdentityField(
        view_name="api-cluster-compatibility", lookup_url_kwarg="cluster_id"
    )
    mark = serializers.SerializerMethodField(help_text="Mark of `approval`, also the ETag; see `was` of PATCH.")

    class Meta:
        model = Cluster
        fields = (
            *ClusterSerializer.Meta.fields,
            "observer", "exporters", "operator", "driver_mode", "unread", "compatibility", "mark",
        )  # fmt: skip

    def get_mark(self, cluster: Flat) -> str:
        return mark_of(cluster)  # type: ignore[arg-type] # read as its row


class ClusterChange(Asked):
    approval = serializers.ChoiceField(
        choices=ApprovalRule.choices,
        help_text="none: plans change nodes without approval. A pool's own rule takes precedence.",
    )
    reason = serializers.CharField(max_length=1000, help_text="The reason, stored permanently.")
    was = serializers.CharField(
        max_length=LENGTH, required=False, default="", allow_blank=True,
        help_text="The `mark` that was read. 409 if the rule has changed since. Blank: no check.",
    )  # fmt: skip


class ClusterList(Listing):
    serializer_class = ClusterSerializer

    def get_queryset(self):
        return Cluster.objects.visible_to(self.user).select_related("observer")

    def see(self, rows) -> list[ClusterRow]:
        return see_clusters(rows, user=self.user, now=timezone.now())


class ClusterDetail(Edge):
    mark_field = "mark"

    @extend_schema(responses=ClusterDetailSerializer)
    def get(self, request, cluster_id: int) -> Response:
        return Response(self.shown(cluster_id))

    @extend_schema(request=ClusterChange, responses=ClusterDetailSerializer)
    def patch(self, request, cluster_id: int) -> Response:
        cluster = self.load(Cluster.objects.visible_to(self.user), cluster_id)
        require(self.user, Permission.ADMINISTER, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        set_approval(cluster, actor=self.user.get_username(), now=timezone.now(), **self.read(ClusterChange))
        return Response(self.shown(cluster_id))

    def shown(self, cluster_id: int) -> dict:
        now = timezone.now()
        visible = Cluster.objects.visible_to(self.user).select_related("observer", "exporter_round")
        cluster = self.load(visible, cluster_id)
        (seen,) = see_clusters([cluster], user=self.user, now=now)
        if hasattr(cluster, "observer"):
            cluster.observer.behind_since = seen.freshness.observation.behind_since
        sees_all = scope_of(self.user, Permission.SEE).covers_cluster(cluster.pk)
        if not sees_all and hasattr(cluster, "exporter_round"):
            cluster.exporter_round.message = ""  # the message may name nodes that the caller does not see
        unread = unread_of(cluster) if sees_all else []
        detail = ClusterInDetail(**vars(seen), drivers=read_drivers(cluster), unread=unread)
        return ClusterDetailSerializer(detail, context={"request": self.request}).data


class AcceptanceRequest(Asked):
    uid = serializers.CharField(max_length=64, help_text="`foreign_uid` of the cluster, as read before this request.")
    reason = serializers.CharField(max_length=1000, required=False, default="", allow_blank=True)


class AcceptanceList(Edge):
    @extend_schema(request=AcceptanceRequest, responses={204: OpenApiResponse(description="Accepted.")})
    def post(self, request, cluster_id: int) -> Response:
        """Accepts the rebuilt cluster that now answers at this address. Its rows start afresh."""
        cluster = self.load(Cluster.objects.visible_to(self.user), cluster_id)
        require(self.user, Permission.ADMINISTER, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        asked = self.read(AcceptanceRequest)
        accept(cluster, actor=self.user.get_username(), now=timezone.now(), **asked)
        return Response(status=204)


class AttemptList(Edge):
    @extend_schema(request=None, responses={204: OpenApiResponse(description="A worker retries the cluster.")})
    def post(self, request, cluster_id: int) -> Response:
        """Retries a cluster at once, without waiting for the next scheduled attempt."""
        cluster = self.load(Cluster.objects.visible_to(self.user), cluster_id)
        require(self.user, Permission.STOP, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
        try_now(cluster)
        return Response(status=204)
