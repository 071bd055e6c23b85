from typing import Any

from django.core.exceptions import ValidationError
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from edges.concurrent_edits import LENGTH
from edges.rest import Asked, Edge, Listing, RowSerializer
from fleet.api.filters import PoolFilters
from fleet.api.serializers import FreshnessSerializer, RefSerializer, TallySerializer
from fleet.models import Cluster, Node, Pool
from fleet.models.pool import (
    CLASS_PLACEMENTS,
    MOST_WORSE_PERCENT,
    ClassPlacement,
    PlacementPolicy,
    PoolApproval,
    validate_selector,
)
from fleet.pools.changes import change_pool, create_pool, delete_pool, mark_of
from fleet.pools.membership import preview
from fleet.pools.suggestions import suggest
from fleet.queries import PoolRow, see_pools
from people.rights import Permission, require

NULL = "Physical GPUs. Null: the number is unknown for every GPU node."
UNCOUNTED = "GPU nodes with an unknown number of GPUs."


def _class_placement(pods: str) -> serializers.ChoiceField:
    return serializers.ChoiceField(
        choices=ClassPlacement.choices, required=False, help_text=f"The policy for {pods}. as-pool: that of the pool."
    )  # fmt: skip


class PoolSerializer(RowSerializer):
    row = "pool"
    cluster = RefSerializer()
    counts = TallySerializer(source="tally")
    nodes_freshness = FreshnessSerializer()
    training_placement = _class_placement("jobs")
    inference_placement = _class_placement("services")
    development_placement = _class_placement("notebooks and pods without a controller")
    mark = serializers.SerializerMethodField(help_text="Mark of the settings, also the ETag; see `was` of PATCH.")

    class Meta:
        model = Pool
        fields = (
            "id", "cluster", "name", "mark", "selector", "environment", "workload_class", "approval",
            "max_unavailable", "price_per_gpu_hour", "placement_policy", *CLASS_PLACEMENTS.values(), "spread_label",
            "test_images", "test_claim_template", "test_worse_percent", "counts", "nodes_freshness",
        )  # fmt: skip

    def get_mark(self, pool: Any) -> str:
        return mark_of(pool)


class PoolChange(Asked, serializers.ModelSerializer):
    selector = serializers.CharField(
        max_length=1000, help_text="Label selector in the syntax of kubectl's `--selector`."
    )
    price_per_gpu_hour = serializers.DecimalField(
        max_digits=10,
        decimal_places=4,
        min_value=0,
        allow_null=True,
        required=False,
        help_text="Price of one GPU for one hour, in your currency. Null: unknown.",
    )
    max_unavailable = serializers.IntegerField(min_value=1, max_value=100_000, required=False)
    approval = serializers.ChoiceField(
        choices=PoolApproval.choices, required=False, help_text="none: plans change nodes of the pool without approval."
    )

    placement_policy = serializers.ChoiceField(
        choices=PlacementPolicy.choices, required=False, help_text="How its pods should be placed. none: no finding."
    )
    training_placement = _class_placement("jobs")
    inference_placement = _class_placement("services")
    development_placement = _class_placement("notebooks and pods without a controller")

    test_worse_percent = serializers.IntegerField(
        min_value=1, max_value=MOST_WORSE_PERCENT, allow_null=True, required=False,
        help_text="How much worse than the median of the pool a test's number may be. Null: as each test has it.",
    )  # fmt: skip

    class Meta:
        model = Pool
        fields: tuple[str, ...] = (
            "name", "selector", "environment", "workload_class", "approval", "max_unavailable", "price_per_gpu_hour",
            "placement_policy", *CLASS_PLACEMENTS.values(), "spread_label", "test_images", "test_claim_template",
            "test_worse_percent",
        )  # fmt: skip

    def validate_selector(self, text: str) -> str:
        try:
            validate_selector(text)
        except ValidationError as error:
            raise serializers.ValidationError(error.messages) from error
        return text


class PoolPatch(PoolChange):
    was = serializers.CharField(
        max_length=LENGTH, required=False, allow_blank=True,
        help_text="The `mark` that was read. 409 if the pool has changed since. Blank: no check.",
    )  # fmt: skip

    class Meta(PoolChange.Meta):
        fields = (*PoolChange.Meta.fields, "was")


class PoolRequest(PoolChange):
    cluster = serializers.IntegerField(min_value=1, max_value=2**63 - 1, help_text="The cluster's id.")

    class Meta(PoolChange.Meta):
        validators: list = []  # a taken name is a conflict, which the domain reports
        fields = ("cluster", *PoolChange.Meta.fields)


class NodeNameSerializer(serializers.Serializer):
    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()


class PreviewRequest(Asked):
    cluster = serializers.IntegerField(min_value=1, max_value=2**63 - 1, help_text="The cluster's id.")
    selector = PoolChange().fields["selector"]
    pool = serializers.IntegerField(
        min_value=1, max_value=2**63 - 1, required=False, help_text="The id of the pool whose selector is to change."
    )


class OverlapSerializer(serializers.Serializer):
    pool = RefSerializer()
    nodes = serializers.IntegerField(help_text="Nodes that both pools have.")


class PoolPreviewSerializer(serializers.Serializer):
    """The nodes of a pool with this selector, and the resulting changes."""

    count = serializers.IntegerField(source="nodes")
    gpus = serializers.IntegerField(allow_null=True, help_text=NULL)
    uncounted_nodes = serializers.IntegerField(source="uncounted", help_text=UNCOUNTED)
    entering = serializers.IntegerField()
    leaving = serializers.IntegerField()
    enters = NodeNameSerializer(many=True, help_text="First entering nodes by name.")
    leaves = NodeNameSerializer(many=True, help_text="First leaving nodes by name.")
    unpooled = serializers.IntegerField(help_text="Nodes that leave this pool and are then in no pool.")
    overlaps = OverlapSerializer(many=True, help_text="Other pools that share nodes with this pool.")


class PoolList(Listing):
    serializer_class = PoolSerializer
    filterset_class = PoolFilters
    queryset = Pool.objects.none()

    def get_queryset(self):
        return Pool.objects.visible_to(self.user).select_related("cluster").order_by("cluster__name", "name")

    def see(self, rows) -> list[PoolRow]:
        return see_pools(rows, user=self.user, now=timezone.now())

    @extend_schema(request=PoolRequest, responses={201: PoolSerializer})
    def post(self, request) -> Response:
        asked = self.read(PoolRequest)
        cluster = self.load(Cluster.objects.visible_to(self.user), asked.pop("cluster"))
        administer(self.user, cluster)
        pool = create_pool(cluster=cluster, actor=self.user.username, now=timezone.now(), **asked)
        return Response(pool_data(pool, self.user), status=201)


class PoolDetail(Edge):
    mark_field = "mark"

    @extend_schema(responses=PoolSerializer)
    def get(self, request, pool_id: int) -> Response:
        return Response(pool_data(self.pool(pool_id), self.user))

    @extend_schema(request=PoolPatch(partial=True), responses=PoolSerializer)
    def patch(self, request, pool_id: int) -> Response:
        pool = self.pool(pool_id)
        administer(self.user, pool.cluster)
        asked = self.read(PoolPatch, partial=True)
        return Response(pool_data(change_pool(pool, actor=self.user.username, now=timezone.now(), **asked), self.user))

    @extend_schema(responses={204: None})
    def delete(self, request, pool_id: int) -> Response:
        pool = self.pool(pool_id)
        administer(self.user, pool.cluster)
        delete_pool(pool, actor=self.user.username, now=timezone.now(), was=self.was())
        return Response(status=204)

    def pool(self, pool_id: int) -> Pool:
        return self.load(Pool.objects.visible_to(self.user).select_related("cluster"), pool_id)


class PoolPreviews(Edge):
    """Previews a pool before it is created or changed. Changes nothing."""

    @extend_schema(request=PreviewRequest, responses=PoolPreviewSerializer)
    def post(self, request) -> Response:
        asked = self.read(PreviewRequest)
        cluster = self.load(Cluster.objects.visible_to(self.user), asked["cluster"])
        administer(self.user, cluster)
        pool = self.load(Pool.objects.filter(cluster=cluster), asked["pool"]) if "pool" in asked else None
        return Response(PoolPreviewSerializer(preview(cluster, asked["selector"], pool=pool)).data)


class SuggestionSerializer(serializers.Serializer):
    name = serializers.CharField()
    selector = serializers.CharField()
    nodes = serializers.IntegerField()
    gpus = serializers.IntegerField(allow_null=True, help_text=NULL)
    uncounted_nodes = serializers.IntegerField(source="uncounted", help_text=UNCOUNTED)
    unpooled = serializers.IntegerField(help_text="Nodes of the suggested pool that are in no pool yet.")
    pools = serializers.SerializerMethodField(help_text="Existing pools that have nodes of the suggested pool.")
    reason = serializers.CharField()

    @extend_schema_field(RefSerializer(many=True))
    def get_pools(self, each) -> list[dict]:
        seen = self.context["pools"]
        return [{"id": pool.pk, "name": pool.name} for pool in each.pools if pool.pk in seen]


class PoolSuggestions(Edge):
    """Suggests pools from the nodes of a cluster, the biggest first."""

    @extend_schema(responses=SuggestionSerializer(many=True))
    def get(self, request, cluster_id: int) -> Response:
        cluster = self.load(Cluster.objects.visible_to(self.user), cluster_id)
        pools = set(Pool.objects.visible_to(self.user).filter(cluster=cluster).values_list("pk", flat=True))
        found = suggest(cluster, Node.objects.visible_to(self.user))
        return Response(SuggestionSerializer(found, many=True, context={"pools": pools}).data)


def administer(user, cluster: Cluster) -> None:
    require(user, Permission.ADMINISTER, cluster_id=cluster.pk, where=f"cluster {cluster.name}")


def pool_data(pool: Pool, user) -> dict:
    (seen,) = see_pools([pool], user=user, now=timezone.now())
    return PoolSerializer(seen).data
