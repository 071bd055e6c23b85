"""The filters of all lists in one file, so that names mean the same everywhere."""

from typing import Any

import django_filters as filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field

from fleet import gpu_pods
from fleet.allocation.amounts import allocated_of
from fleet.models import Pool
from fleet.models.state_column import LACKS_UNITS
from fleet.segments.facets import BY_KEY, LAYOUTS, UNKNOWN, in_pools
from fleet.segments.label_conditions import labelled
from fleet.states.node import FAULTS
from kube import selectors

TEXT_AT_MOST = 253
WORDS_AT_MOST = 50


class Text(filters.CharFilter):
    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, max_length=TEXT_AT_MOST, **kwargs)


@extend_schema_field(OpenApiTypes.BOOL)
class YesNo(filters.TypedChoiceFilter):
    """A filter that accepts true or false and refuses other values, which django-filter's own ignores."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(
            *args, choices=[("true", "true"), ("false", "false")], coerce=lambda said: said == "true", **kwargs
        )


class Ordering(filters.OrderingFilter):
    """An ordering that ends with the key, so that pages of equal rows do not overlap."""

    def filter(self, qs: QuerySet, value: list[str] | None) -> QuerySet:
        ordered = super().filter(qs, value)
        return ordered.order_by(*ordered.query.order_by, "pk") if value else ordered


class Words(forms.Field):
    """One or more texts: the parameter may be repeated."""

    widget = forms.SelectMultiple

    def clean(self, value: Any) -> tuple[str, ...]:
        words = tuple(dict.fromkeys(word for word in value or () if word))
        if any(len(word) > TEXT_AT_MOST or "\x00" in word for word in words) or len(words) > WORDS_AT_MOST:
            raise ValidationError(f"At most {WORDS_AT_MOST} values of at most {TEXT_AT_MOST} characters.")
        return words


@extend_schema_field({"type": "array", "items": {"type": "string"}})
class OfFacet(filters.Filter):
    """Nodes with one of these values of a facet; `unknown` selects nodes without a value."""

    field_class = Words

    def __init__(self, key: str, label: str = "") -> None:
        super().__init__(label=label or f"May be repeated. `{UNKNOWN}`: nodes without a known value.")
        self.key = key

    def filter(self, qs: QuerySet, value: tuple[str, ...]) -> QuerySet:
        return qs.filter(BY_KEY[self.key].picks(value)) if value else qs


def ordering(*names: str, **columns: str) -> Ordering:
    """Builds an ordering. `columns` maps names to other columns."""
    return Ordering(fields=[(columns.get(name, name), name) for name in names])


class PoolFilters(filters.FilterSet):
    cluster = Text(field_name="cluster__name", label="Name of the cluster.")
    environment = Text()
    ordering = ordering("name")


class NodeFilters(filters.FilterSet):
    search = Text(method="search_for", label="Text in name, product, driver version, kernel or zone.")
    selector = filters.CharFilter(
        method="selected", max_length=selectors.LONGEST, label="Label selector in the syntax of kubectl's `--selector`."
    )
    cluster = OfFacet("cluster", label="Name of the cluster. May be repeated.")
    pool = Text(
        method="in_pool", label="Name of the pool. `none`: nodes in no pool. `several`: nodes in several pools."
    )
    name = Text(lookup_expr="icontains", label="Part of the name.")
    upgrade_state = Text()
    environment = OfFacet(
        "environment", label="Environment of the node's pool; also `no-pool`, `several`. May be repeated."
    )
    workload_class = OfFacet(
        "workload_class", label="Workload class of the node's pool; also `no-pool`, `several`. May be repeated."
    )
    product = OfFacet(
        "product", label="Product without -SHARED and -MIG-…; `unknown`: no known product. May be repeated."
    )
    vendor = OfFacet("vendor")
    driver_version = OfFacet("driver_version")
    operator_version = OfFacet("operator_version")
    kernel = OfFacet("kernel")
    os_image = OfFacet("os_image")
    container_runtime = OfFacet("container_runtime")
    region = OfFacet("region")
    zone = OfFacet("zone")
    instance_type = OfFacet("instance_type")
    capacity_type = OfFacet("capacity_type")
    sharing = OfFacet("sharing", label=f"One of {', '.join(sorted(LAYOUTS.values()))}. May be repeated.")
    nvlink_domain = OfFacet("nvlink_domain")
    numa = OfFacet(
        "numa", label="`true`: the node has several NUMA nodes. `unknown`: the node has no label about NUMA."
    )
    is_gpu_node = YesNo()
    is_ready = YesNo(label="Nodes that stopped reporting match neither value.")
    is_reporting = YesNo(field_name="is_ready", lookup_expr="isnull", exclude=True)
    is_unschedulable = YesNo()
    is_held = YesNo()
    held_by = Text(label="Holder of the node, such as `plan-7`.")
    has_missing_gpus = YesNo(method="with_missing_gpus")
    has_fault = YesNo(
        method="with_fault",
        label="`true`: nodes that are not ready, do not report, failed an upgrade, lack GPUs or have findings.",
    )
    ordering = ordering(
        "name", "cluster__name", "gpu_product", "driver_version", "upgrade_state", "changed_at", "created_at",
        "gpu_allocated", driver_version="reported_driver", gpu_allocated="shown_allocated",
    )  # fmt: skip

    def filter_queryset(self, nodes: QuerySet) -> QuerySet:
        return super().filter_queryset(nodes.alias(shown_allocated=allocated_of("gpu")))

    def selected(self, nodes: QuerySet, name: str, text: str) -> QuerySet:
        return nodes.filter(labelled(selectors.parse(text)))

    def search_for(self, nodes: QuerySet, name: str, text: str) -> QuerySet:
        places = ("name", "gpu_product", "driver_version", "kernel", "zone")
        found = Q()
        for place in places:
            found |= Q(**{f"{place}__icontains": text})
        return nodes.filter(found)

    def in_pool(self, nodes: QuerySet, name: str, pool: str) -> QuerySet:
        return nodes.filter(in_pools(pool, Pool.objects.visible_to(self.request.user).filter(name=pool)))

    def with_missing_gpus(self, nodes: QuerySet, name: str, wanted: bool) -> QuerySet:  # noqa: FBT001
        return nodes.filter(LACKS_UNITS) if wanted else nodes.exclude(LACKS_UNITS)

    def with_fault(self, nodes: QuerySet, name: str, wanted: bool) -> QuerySet:  # noqa: FBT001
        return nodes.filter(state_code__in=FAULTS) if wanted else nodes.exclude(state_code__in=FAULTS)


class GpuFilters(filters.FilterSet):
    cluster = Text(field_name="node__cluster__name", label="Name of the cluster.")
    node = Text(field_name="node__name", label="Name of the node.")
    product = Text()
    uuid = Text()


class PodFilters(filters.FilterSet):
    cluster = Text(field_name="cluster__name", label="Name of the cluster.")
    node = Text(field_name="node_name", label="Name of the node.")
    namespace = Text()
    name = Text(lookup_expr="icontains", label="Part of the name.")
    phase = filters.ChoiceFilter(
        choices=[(phase, phase) for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown")]
    )
    operand = Text(label="Operand of the GPU stack, such as `driver`.")
    is_ready = YesNo()
    is_tenant = YesNo(label="`true`: pods with or waiting for GPUs of any kind, without pods of the GPU stack.")
    state = filters.ChoiceFilter(method="in_state", choices=[(name, name) for name in gpu_pods.STATES])
    pool = Text(
        method="in_pool", label="Pool of the pod's node: name or `cluster/name`. `none`: the node is in no pool."
    )
    resource = Text(
        method="with_resource", label="Resource that the pod requests. `claim`: the pod has ResourceClaims."
    )
    owner = Text(field_name="owner_name", label="Name of the pod's direct owner.")
    ordering = ordering("name", "namespace", "created_at", "gpus", "restarts", "state", state="shown_state")

    def in_state(self, pods: QuerySet, name: str, state: str) -> QuerySet:
        return pods.filter(gpu_pods.in_state(state))

    def in_pool(self, pods: QuerySet, name: str, pool: str) -> QuerySet:
        return pods.filter(gpu_pods.on_nodes_of(pool, Pool.objects.visible_to(self.request.user)))

    def with_resource(self, pods: QuerySet, name: str, resource: str) -> QuerySet:
        return pods.filter(gpu_pods.asking_for(resource))
