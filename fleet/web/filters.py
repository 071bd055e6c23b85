"""The filter of the node table, stored in the URL."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.http import QueryDict

from fleet.allocation.tally import Alike
from fleet.models import Pool
from fleet.segments.facets import BY_KEY, UNKNOWN, Choice, in_pools, narrow
from fleet.segments.label_conditions import labelled
from fleet.states.node import FAULTS, STATE_KEYS
from kube import selectors

PARTS: dict[str, str] = {
    "q": "the text",
    "pool": "the pool",
    "state": "the state",
    "held": "“held”",
    "faults": "“faults only”",
}
SELECTS = ("cluster", "product", "driver_version")  # facets with a select in the form
OLD_NAMES = {"driver_version": "driver"}  # in old URLs
# Each is an index of GPU nodes, so that a page reads only its rows.
ORDERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "worst": ("worst first", ("state_code", "-critical", "cluster_id", "name")),
    "name": ("by name", ("cluster_id", "name")),
    "driver": ("by driver", ("reported_driver", "cluster_id", "name")),
    "free": ("most free GPUs", ("-gpus_free", "cluster_id", "name")),
    "changed": ("last changed", ("-changed_at", "name")),
}


@dataclass(frozen=True)
class NodeFilter:
    q: str = ""  # a part of the name, or a label selector
    pool: str = ""  # cluster/pool, "none" or "several"
    state: str = ""
    held: str = ""
    faults: str = ""
    sort: str = "worst"
    choice: Choice = field(default_factory=dict)

    @classmethod
    def read(cls, query: QueryDict) -> "NodeFilter":
        given = {name: query.get(name, "").strip()[:200] for name in PARTS}
        sort = query.get("sort", "worst")
        return cls(**given, sort=sort if sort in ORDERS else "worst", choice=read_choice(query))

    @property
    def active(self) -> list[str]:
        return [*(name for name in PARTS if getattr(self, name)), *self.choice]

    def without(self, name: str) -> "NodeFilter":
        if name in PARTS:
            return replace(self, **{name: ""})  # type: ignore[arg-type]
        return replace(self, choice={key: values for key, values in self.choice.items() if key != name})

    def query(self) -> str:
        """Returns the URL's query; blank without a filter."""
        given = {**{name: getattr(self, name) for name in PARTS if getattr(self, name)}, **self.choice}
        if self.sort != "worst":
            given["sort"] = self.sort
        return urlencode(given, doseq=True)

    def chosen(self, key: str) -> str:
        """Returns a facet's single value for a select of the form."""
        values = self.choice.get(key, ())
        return values[0] if len(values) == 1 else ""

    @property
    def beside(self) -> list[tuple[str, str, tuple[str, ...], str]]:
        """Returns choices without a select: key, title, values, and the query without them."""
        return [
            (key, BY_KEY[key].title, values, self.without(key).query())
            for key, values in self.choice.items()
            if key not in SELECTS or len(values) > 1
        ]

    def narrow(self, nodes: QuerySet, *, pools: QuerySet[Pool]) -> QuerySet:
        """Filters nodes. `pools` are the visible ones, so that a filter reveals no others."""
        found = narrow(nodes.filter(*self._conditions(pools)), self.choice)
        return found.order_by(*ORDERS[self.sort][1])

    def count_in(self, alike: Iterable[Alike], clusters: Mapping[str, int], *, pools: QuerySet[Pool]) -> int | None:
        """Counts matching GPU nodes from counters; None: only the nodes can tell. `clusters` are by name."""
        if self.q or set(self.choice) - set(SELECTS):
            return None
        picked = [each for each in alike if each.is_gpu_node and self._picks(each, clusters) and self._has_state(each)]
        if self.pool and self.pool not in ("none", "several"):
            cluster, _, name = self.pool.partition("/")
            named = set(pools.filter(name=name, cluster__name=cluster).values_list("pk", flat=True))
            picked = [each for each in picked if not each.pools.isdisjoint(named)]
        return sum(each.held if self.held else each.nodes for each in picked)

    def _picks(self, each: Alike, clusters: Mapping[str, int]) -> bool:
        said = {"product": each.gpu_product or UNKNOWN, "driver_version": each.reported_driver or UNKNOWN}
        is_there = all(said[key] in values for key, values in self.choice.items() if key != "cluster")
        of_these = self.choice.get("cluster")
        number = {"none": 0, "several": 2}.get(self.pool)
        return (
            is_there
            and (not of_these or each.cluster in {clusters.get(name) for name in of_these})
            and (number is None or min(len(each.pools), 2) == number)
        )

    def _has_state(self, each: Alike) -> bool:
        wanted = STATE_KEYS.get(self.state, -1) if self.state else each.state
        return wanted == each.state and (not self.faults or each.state in FAULTS)

    @property
    def is_selector(self) -> bool:
        if not any(mark in self.q for mark in "=!,/ "):
            return False
        try:
            return bool(selectors.parse(self.q).requirements)
        except selectors.BadSelector:
            return False

    def _conditions(self, pools: QuerySet[Pool]) -> list[Q]:
        found = []
        if self.q:
            found.append(labelled(selectors.parse(self.q)) if self.is_selector else Q(name__icontains=self.q))
        if self.held:
            found.append(Q(is_held=True))
        return [*found, *self._pool_conditions(pools), *self._state_conditions()]

    def _pool_conditions(self, pools: QuerySet[Pool]) -> list[Q]:
        if not self.pool:
            return []
        cluster, _, pool = self.pool.partition("/")
        return [in_pools(self.pool, pools.filter(name=pool, cluster__name=cluster))]

    def _state_conditions(self) -> list[Q]:
        found = []
        if self.faults:
            found.append(Q(state_code__in=FAULTS))
        if self.state:
            found.append(Q(state_code=STATE_KEYS.get(self.state, -1)))
        return found


def words_of(part: str) -> str:
    """Returns the name of a filter part within a sentence."""
    return PARTS.get(part) or f"the {BY_KEY[part].title}"


def read_choice(query: QueryDict) -> Choice:
    """Parses the chosen facet values. Unknown facets are ignored."""
    given = {key: query.getlist(key) or query.getlist(OLD_NAMES.get(key, key)) for key in BY_KEY}
    read = {
        key: tuple(dict.fromkeys(v.strip()[:253] for v in values if v.strip()))[:50] for key, values in given.items()
    }
    return {key: values for key, values in read.items() if values}
