"""The properties by which failing nodes are compared with good ones.

Apps above add their own, such as the plan that changed a node: they register here, since they import this app.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping

from django.db.models import QuerySet

from fleet.models import Node, Pool
from fleet.racks import place_values

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
PLACES: Mapping[str, str] = {"rack": "rack", "switch": "switch", "spine_switch": "spine switch"}
NodeProperties = Mapping[str, str | frozenset[str]]
# By display name: the reader of a cluster's values by UID of the node. A node without one has none.
FROM_ABOVE: dict[str, Callable[[int], Mapping[str, str]]] = {}


def properties_of(nodes: QuerySet[Node], cluster_id: int, *, rack_label: str = "") -> Mapping[str, NodeProperties]:
    """Returns the properties by name of the node. Three queries, and one for each app above.

    The rack, a switch or a property of an app above is left out where no node has one. `rack_label` is the label that
    names the rack.
    """
    columns = {**COLUMNS, **PLACES}
    shown = nodes.annotate(**place_values(cluster_id, named=rack_label)).order_by("name")
    shown_values = shown.values_list("pk", "uid", "name", *columns)
    rows = {pk: (uid, name, dict(zip(columns.values(), its, strict=True))) for pk, uid, name, *its in shown_values}
    pools: dict[int, set[str]] = defaultdict(set)
    for node, pool in Pool.nodes.through.objects.filter(node__in=list(rows)).values_list("node", "pool__name"):
        pools[node].add(pool)
    above = {title: read(cluster_id) for title, read in FROM_ABOVE.items()}
    uids = {uid for uid, *_ in rows.values()}
    absent = {title for title in PLACES.values() if not any(its[title] for *_, its in rows.values())}
    absent |= {title for title, values in above.items() if uids.isdisjoint(values)}
    return {
        name: {key: value for key, value in its.items() if key not in absent}
        | {title: frozenset(filter(None, [values.get(uid)])) for title, values in above.items() if title not in absent}
        | {"pool": frozenset(pools[pk])}
        for pk, (uid, name, its) in rows.items()
    }
