"""The facets of the fleet in one table, for the segments page, the node list and REST."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Case, CharField, Count, Q, QuerySet, Value, When

from fleet.models import Node, Pool
from fleet.models.node import members_of
from fleet.segments.label_conditions import labelled, operator_versions
from gpu import labels
from gpu.resources.layout import HOW
from kube.selectors import Requirement, Selector

UNKNOWN = "unknown"  # no value: counts like any other, so that no node is dropped
NO_POOL, SEVERAL = "no-pool", "several"
# NFD, docs/usage/features.md: “Multiple memory nodes i.e. NUMA architecture detected”. Its only value is true.
NUMA = "feature.node.kubernetes.io/memory-numa"
LAYOUTS = {
    (mig, sharing): "+".join(part for part in (mig and f"mig-{mig}", sharing) if part) or "none"
    for mig in ("", "single", "mixed")
    for sharing in ("", *HOW)
}
SHARING_MODE = Case(
    *(When(mig_strategy=mig, sharing=sharing, then=Value(name)) for (mig, sharing), name in LAYOUTS.items()),
    default=Value(UNKNOWN),
    output_field=CharField(),
)

Choice = Mapping[str, tuple[str, ...]]  # facet → values; a node needs one of each


@dataclass(frozen=True)
class Facet:
    key: str  # in URLs and REST
    title: str  # within a sentence
    column: str  # of the counter rows; facets may share a column
    picks: Callable[[tuple[str, ...]], Q]
    silence: str = ""  # the missing source when there is no value
    labels: tuple[str, ...] = ()  # labels with equivalent values, for selectors
    why_no_label: str = ""  # why a selector cannot express it
    is_verbatim: bool = False  # the column equals the label
    is_dear: bool = False  # read from all labels of all nodes: counted only on request


def _column(name: str) -> Callable[[tuple[str, ...]], Q]:
    return lambda values: Q(**{f"{name}__in": ["" if value == UNKNOWN else value for value in values]})


def _sharing(values: tuple[str, ...]) -> Q:
    known = {name: Q(mig_strategy=mig, sharing=sharing) for (mig, sharing), name in LAYOUTS.items()}
    rest = ~_any_of_conditions(known.values())
    return _any_of_conditions(known.get(value, rest if value == UNKNOWN else Q(pk__in=[])) for value in values)


def _numa(values: tuple[str, ...]) -> Q:
    said = labelled(Selector((Requirement(NUMA, frozenset(values) - {UNKNOWN}, negated=False),)))
    silent = labelled(Selector((Requirement(NUMA, None, negated=True),)))
    return said | silent if UNKNOWN in values else said


def _operator(values: tuple[str, ...]) -> Q:
    versions = operator_versions()
    found = Q(cluster__in=[cluster for cluster, version in versions.items() if version in values])
    return found | ~Q(cluster__in=list(versions)) if UNKNOWN in values else found


def _pool_condition(name: str) -> Callable[[tuple[str, ...]], Q]:
    def picks(values: tuple[str, ...]) -> Q:
        wanted = ["" if value == UNKNOWN else value for value in values]
        pools = Pool.objects.filter(**{f"{name}__in": wanted})
        found = Q(pk__in=members_of(pools.values("pk"))) & ~Q(pk__in=in_several_pools())
        if NO_POOL in values:
            found |= ~Q(pk__in=Node.pools.through.objects.values("node_id"))
        return found | Q(pk__in=in_several_pools()) if SEVERAL in values else found

    return picks


def in_pools(said: str, named: QuerySet[Pool]) -> Q:
    """Filters nodes in no pool (`none`), in several pools (`several`), or in the named ones."""
    if said == "none":
        return ~Q(pk__in=Node.pools.through.objects.values("node_id"))
    return Q(pk__in=in_several_pools() if said == "several" else members_of(named.values("pk")))


def in_several_pools() -> QuerySet:
    """Returns the keys of nodes in several pools, for a subquery."""
    members = Node.pools.through.objects.order_by().values("node_id")
    return members.annotate(number=Count("pk")).filter(number__gt=1).values("node_id")  # type: ignore[misc]


def _any_of_conditions(conditions: Iterable[Q]) -> Q:
    found = Q(pk__in=[])
    for condition in conditions:
        found |= condition
    return found


STATUS = "it comes from the node's status, and no permanent label contains it"
CHANGES = "it changes when the node is upgraded: the node would leave the pool in the middle of its change"
POOLS_OWN = "it is a property of a pool, not a label of the node. Set it on the new pool"
FACETS: tuple[Facet, ...] = (
    Facet("cluster", "cluster", "cluster", lambda values: Q(cluster__name__in=values)),
    Facet(
        "environment", "environment", "a_pool", _pool_condition("environment"),
        silence="The environment belongs to the pool. Set it on the page of the pool.", why_no_label=POOLS_OWN,
    ),
    Facet("workload_class", "workload class", "a_pool", _pool_condition("workload_class"), why_no_label=POOLS_OWN),
    Facet(
        "product", "product", "gpu_product", _column("gpu_product"),
        labels=(labels.GPU_PRODUCT, *labels.AMD_PRODUCT, labels.INTEL_PRODUCT),
        silence=f"Label of GPU feature discovery: {labels.GPU_PRODUCT}.",
    ),
    Facet("vendor", "vendor", "gpu_vendor", _column("gpu_vendor"), why_no_label="no label of all vendors contains it"),
    Facet(
        "driver_version", "driver", "reported_driver", _column("reported_driver"), why_no_label=CHANGES,
        silence=f"Label of GPU feature discovery: {labels.DRIVER_VERSION}.",
    ),
    Facet(
        "operator_version", "GPU operator", "cluster", _operator,
        silence="From the labels of the ClusterPolicy or the operator's Deployment, or from its image.",
    ),
    Facet("kernel", "kernel", "kernel", _column("kernel"), why_no_label=CHANGES),
    Facet("os_image", "OS image", "os_image", _column("os_image"), why_no_label=STATUS),
    Facet(
        "container_runtime", "container runtime", "container_runtime", _column("container_runtime"),
        why_no_label=STATUS,
    ),
    Facet("region", "region", "region", _column("region"), f"From the label {labels.REGION}.", (labels.REGION,),
        is_verbatim=True,
    ),
    Facet("zone", "zone", "zone", _column("zone"), f"From the label {labels.ZONE}.", (labels.ZONE,),
        is_verbatim=True,
    ),
    Facet(
        "instance_type", "instance type", "instance_type", _column("instance_type"),
        f"From the label {labels.INSTANCE_TYPE}.", (labels.INSTANCE_TYPE,),
        is_verbatim=True,
    ),
    Facet(
        "capacity_type", "capacity type", "capacity_type", _column("capacity_type"),
        silence="Label of clouds and Karpenter (spot, on-demand).",
        labels=(*labels.CAPACITY_TYPES, *labels.GKE_SPOT),
    ),
    Facet(
        "sharing", "sharing", "sharing_mode", _sharing,
        why_no_label="it is how the GPUs are partitioned and shared now, and changes with the configuration",
    ),
    Facet(
        "nvlink_domain", "NVLink domain", "nvlink_domain", _column("nvlink_domain"),
        f"From the label {labels.GPU_CLIQUE}, on nodes with multi-node NVLink.", (labels.GPU_CLIQUE,),
        is_verbatim=True,
    ),
    Facet(
        "numa", "NUMA", "numa", _numa, f"Label of node feature discovery, with several NUMA nodes: {NUMA}.", (NUMA,),
        is_dear=True,
    ),
)  # fmt: skip
BY_KEY = {facet.key: facet for facet in FACETS}


def narrow(nodes: QuerySet, choice: Choice) -> QuerySet:
    """Filters nodes by one chosen value per chosen facet. Makes no join, so no node is repeated."""
    return nodes.filter(*(BY_KEY[key].picks(values) for key, values in choice.items() if values))


def words_of(key: str, value: str) -> str:
    """Returns a value as text for people."""
    if value == UNKNOWN:
        return _unknown(BY_KEY[key])
    if key == "numa" and value == "true":
        return "several memory nodes"
    return {SEVERAL: "in several pools", NO_POOL: "in no pool"}.get(value, value)


def _unknown(facet: Facet) -> str:
    if facet.why_no_label == POOLS_OWN:
        return "not set"
    return "no label" if facet.labels or facet.key == "driver_version" else "unknown"
