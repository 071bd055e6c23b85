"""The filter of the nodes table: read from the URL, kept in the URL, never changed by itself."""

from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.db.models import Case, Count, F, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce
from django.http import QueryDict

from fleet import selectors
from fleet.node_state import AT_REST, TITLES, NodeState

# The same order of precedence as `node_state`: the first that is true names the node.
CONDITIONS: tuple[tuple[NodeState, Q], ...] = (
    (NodeState.UPGRADE_FAILED, Q(upgrade_state="upgrade-failed")),
    (NodeState.UNKNOWN, Q(is_ready__isnull=True)),
    (NodeState.NOT_READY, Q(is_ready=False)),
    (NodeState.UPGRADING, ~Q(upgrade_state__in=sorted(AT_REST))),
    (NodeState.GPUS_MISSING, Q(gpu_expected__gt=Coalesce(F("gpu_allocatable"), 0))),
    (NodeState.CORDONED, Q(is_unschedulable=True)),
    (NodeState.HELD, Q(is_held=True)),
)
FAULTS = (NodeState.UPGRADE_FAILED, NodeState.NOT_READY, NodeState.UNKNOWN, NodeState.GPUS_MISSING)
WORST_FIRST = (*FAULTS, NodeState.UPGRADING, NodeState.CORDONED, NodeState.HELD, NodeState.READY)
PARTS: dict[str, str] = {
    "q": "the text",
    "cluster": "the cluster",
    "pool": "the pool",
    "product": "the product",
    "driver": "the driver",
    "state": "the state",
    "held": "“held”",
    "faults": "“faults only”",
}
ORDERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "worst": ("worst first", ("severity", "cluster__name", "name")),
    "name": ("by name", ("cluster__name", "name")),
    "driver": ("by driver", ("driver_version", "cluster__name", "name")),
    "free": ("most free GPUs", ("-gpus_free", "cluster__name", "name")),
    "changed": ("last changed", ("-changed_at", "name")),
}


def with_state(nodes: QuerySet) -> QuerySet:
    """Name each node's state in the database, so that a table can filter and sort by it."""
    codes = [When(condition, then=Value(int(state))) for state, condition in CONDITIONS]
    ranks = [When(code=int(state), then=Value(rank)) for rank, state in enumerate(WORST_FIRST)]
    return nodes.annotate(
        code=Case(*codes, default=Value(int(NodeState.READY)), output_field=IntegerField()),
        gpus_free=Coalesce(F("gpu_allocatable"), 0) - F("gpu_allocated"),
    ).annotate(severity=Case(*ranks, default=Value(len(WORST_FIRST)), output_field=IntegerField()))


@dataclass(frozen=True)
class NodeFilter:
    q: str = ""  # a part of the name, or a label selector
    cluster: str = ""
    pool: str = ""  # cluster/pool, or "none", or "several"
    product: str = ""
    driver: str = ""
    state: str = ""
    held: str = ""
    faults: str = ""
    sort: str = "worst"

    @classmethod
    def read(cls, query: QueryDict) -> "NodeFilter":
        given = {name: query.get(name, "").strip()[:200] for name in PARTS}
        sort = query.get("sort", "worst")
        return cls(**given, sort=sort if sort in ORDERS else "worst")

    @property
    def active(self) -> list[str]:
        return [name for name in PARTS if getattr(self, name)]

    def without(self, name: str) -> "NodeFilter":
        return replace(self, **{name: ""})

    def query(self) -> str:
        """As the URL has it; blank for none."""
        given = {name: getattr(self, name) for name in self.active}
        if self.sort != "worst":
            given["sort"] = self.sort
        return urlencode(given)

    def narrow(self, nodes: QuerySet) -> QuerySet:
        nodes = with_state(nodes)
        if self.pool in {"none", "several"}:
            nodes = nodes.annotate(pool_count=Count("pools"))
        nodes = nodes.filter(*self._conditions())
        if self.is_selector:
            # Labels are JSON: a selector is read in Python, by keys only, and once.
            wanted = selectors.parse(self.q)
            nodes = nodes.filter(
                pk__in=[pk for pk, labels in nodes.values_list("pk", "labels") if wanted.matches(labels)]
            )
        return nodes.order_by(*ORDERS[self.sort][1])

    @property
    def is_selector(self) -> bool:
        if not any(mark in self.q for mark in "=!,/ "):
            return False
        try:
            return bool(selectors.parse(self.q).requirements)
        except selectors.BadSelector:
            return False

    def _conditions(self) -> list[Q]:
        found = []
        if self.q and not self.is_selector:
            found.append(Q(name__icontains=self.q))
        if self.cluster:
            found.append(Q(cluster__name=self.cluster))
        if self.product:
            found.append(Q(gpu_product=self.product))
        if self.driver:
            found.append(Q(driver_version="" if self.driver == "unknown" else self.driver))
        if self.held:
            found.append(Q(is_held=True))
        return [*found, *self._pool_conditions(), *self._state_conditions()]

    def _pool_conditions(self) -> list[Q]:
        if not self.pool:
            return []
        if self.pool == "none":
            return [Q(pool_count=0)]
        if self.pool == "several":
            return [Q(pool_count__gt=1)]
        cluster, _, pool = self.pool.partition("/")
        return [Q(pools__name=pool, pools__cluster__name=cluster)]

    def _state_conditions(self) -> list[Q]:
        found = []
        if self.faults:
            found.append(Q(code__in=[int(state) for state in FAULTS]))
        if self.state:
            found.append(Q(code=STATE_KEYS.get(self.state, -1)))
        return found


def state_key(state: NodeState) -> str:
    """How the URL names a state: not-ready, gpus-missing."""
    return state.name.lower().replace("_", "-")


STATE_KEYS = {state_key(state): int(state) for state in TITLES}
