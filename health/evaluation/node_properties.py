"""The properties by which failing nodes are compared with good ones."""

from collections import defaultdict
from collections.abc import Mapping

from django.db.models import QuerySet

from fleet.models import Node, Pool
from fleet.racks import rack_labels, rack_value

COLUMNS: Mapping[str, str] = {
    "kernel": "kernel",
    "os_image": "OS image",
    "gpu_product": "GPU",
    "driver_version": "driver",
    "container_runtime": "container runtime",
    "zone": "zone",
    "instance_type": "instance type",
    "kubelet_version": "kubelet",
    "nvlink_domain": "NVLink domain",
}  # column of a node → display name
NodeProperties = Mapping[str, str | frozenset[str]]


def properties_of(nodes: QuerySet[Node], cluster_id: int, *, rack_label: str = "") -> Mapping[str, NodeProperties]:
    """Returns the properties by name of the node. Three queries.

    The rack is left out where no node has one. `rack_label` is the label that names it.
    """
    labels = rack_labels(cluster_id, named=rack_label)
    columns = {**COLUMNS, "rack": "rack"}
    shown = nodes.annotate(rack=rack_value(labels)).order_by("name").values_list("pk", "name", *columns)
    rows = {pk: (name, dict(zip(columns.values(), values, strict=True))) for pk, name, *values in shown}
    pools: dict[int, set[str]] = defaultdict(set)
    for node, pool in Pool.nodes.through.objects.filter(node__in=list(rows)).values_list("node", "pool__name"):
        pools[node].add(pool)
    has_racks = any(values["rack"] for _, values in rows.values())
    return {
        name: {key: value for key, value in values.items() if key != "rack" or has_racks}
        | {"pool": frozenset(pools[pk])}
        for pk, (name, values) in rows.items()
    }
