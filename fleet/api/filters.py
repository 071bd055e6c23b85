"""What each list can be narrowed down by. One file, so that the same word means the same everywhere."""

import django_filters as filters
from django.db.models import Q, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field

from fleet.models import Gpu, Node, Pod, Pool
from fleet.models.node import members_of
from fleet.tally import GPUS_MISSING

TEXT_AT_MOST = 253


class Text(filters.CharFilter):
    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, max_length=TEXT_AT_MOST, **kwargs)


@extend_schema_field(OpenApiTypes.BOOL)
class YesNo(filters.TypedChoiceFilter):
    """true or false; anything else is refused, where django-filter's own would ignore it."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(
            *args, choices=[("true", "true"), ("false", "false")], coerce=lambda said: said == "true", **kwargs
        )


class Ordering(filters.OrderingFilter):
    """Ends with the key: pages of rows that compare equal would otherwise overlap."""

    def filter(self, qs: QuerySet, value: list[str] | None) -> QuerySet:
        ordered = super().filter(qs, value)
        return ordered.order_by(*ordered.query.order_by, "pk") if value else ordered


def ordering(*names: str) -> Ordering:
    return Ordering(fields=[(name, name) for name in names])


class PoolFilters(filters.FilterSet):
    cluster = Text(field_name="cluster__name", label="Name of the cluster.")
    environment = Text()
    ordering = ordering("name")

    class Meta:
        model = Pool
        fields: list[str] = []


class NodeFilters(filters.FilterSet):
    search = Text(method="search_for", label="In name, product, driver version, kernel and zone.")
    cluster = Text(field_name="cluster__name", label="Name of the cluster.")
    pool = Text(method="in_pool", label="Name of the pool.")
    name = Text(lookup_expr="icontains", label="A part of the name.")
    product = Text(field_name="gpu_product")
    driver_version = Text()
    upgrade_state = Text()
    kernel = Text()
    zone = Text()
    is_gpu_node = YesNo()
    is_ready = YesNo(label="Nodes that stopped reporting are neither.")
    is_reporting = YesNo(field_name="is_ready", lookup_expr="isnull", exclude=True)
    is_unschedulable = YesNo()
    is_held = YesNo()
    held_by = Text(label="As `plan-7`.")
    has_missing_gpus = YesNo(method="with_missing_gpus")
    has_fault = YesNo(method="with_fault", label="Not ready, not reporting, failed, or GPUs missing.")
    ordering = ordering(
        "name", "cluster__name", "gpu_product", "driver_version", "upgrade_state", "changed_at", "created_at",
        "gpu_allocated",
    )  # fmt: skip

    class Meta:
        model = Node
        fields: list[str] = []

    def search_for(self, nodes: QuerySet, name: str, text: str) -> QuerySet:
        places = ("name", "gpu_product", "driver_version", "kernel", "zone")
        found = Q()
        for place in places:
            found |= Q(**{f"{place}__icontains": text})
        return nodes.filter(found)

    def in_pool(self, nodes: QuerySet, name: str, pool: str) -> QuerySet:
        return nodes.filter(pk__in=members_of(Pool.objects.filter(name=pool).values("pk")))

    def with_missing_gpus(self, nodes: QuerySet, name: str, wanted: bool) -> QuerySet:  # noqa: FBT001
        nodes = nodes.alias(missing=GPUS_MISSING)
        return nodes.filter(missing__gt=0) if wanted else nodes.filter(missing=0)

    def with_fault(self, nodes: QuerySet, name: str, wanted: bool) -> QuerySet:  # noqa: FBT001
        well = Q(is_ready=True, missing=0) & ~Q(upgrade_state="upgrade-failed")
        nodes = nodes.alias(missing=GPUS_MISSING)
        return nodes.exclude(well) if wanted else nodes.filter(well)


class GpuFilters(filters.FilterSet):
    cluster = Text(field_name="node__cluster__name", label="Name of the cluster.")
    node = Text(field_name="node__name", label="Name of the node.")
    product = Text()
    uuid = Text()

    class Meta:
        model = Gpu
        fields: list[str] = []


class PodFilters(filters.FilterSet):
    cluster = Text(field_name="cluster__name", label="Name of the cluster.")
    node = Text(field_name="node_name", label="Name of the node.")
    namespace = Text()
    name = Text(lookup_expr="icontains", label="A part of the name.")
    phase = filters.ChoiceFilter(
        choices=[(phase, phase) for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown")]
    )
    operand = Text(label="As `driver`.")
    is_ready = YesNo()
    is_tenant = YesNo(method="of_tenants", label="Holds GPUs and is none of the GPU stack's own.")
    ordering = ordering("name", "namespace", "created_at", "gpus", "restarts")

    class Meta:
        model = Pod
        fields: list[str] = []

    def of_tenants(self, pods: QuerySet, name: str, wanted: bool) -> QuerySet:  # noqa: FBT001
        tenants = Q(gpus__gt=0, operand="")
        return pods.filter(tenants) if wanted else pods.exclude(tenants)
