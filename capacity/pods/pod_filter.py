"""The filter and order of the list of GPU pods, stored in the URL."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.urls import reverse

from fleet import gpu_pods
from fleet.models import Pool
from fleet.models.pod import PodQuerySet
from fleet.owner_chains import belongs_to

LONGEST = 253  # characters of one value
WORST_FIRST = "state"
PARTS: Mapping[str, str] = {
    "q": "the text",
    "cluster": "the cluster",
    "namespace": "the namespace",
    "state": "the state",
    "pool": "the pool",
    "resource": "the resource",
    "node": "the node",
    "owner": "the workload",
}
BY_WORKLOAD = "workload"
NO_OWNER = "none"
LONGEST_OWNER = 320  # characters of kind and name
# Title and columns of each order; the columns are those of the index of lists.
ORDERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    WORST_FIRST: ("worst first", ("shown_state", "created_at", "pk")),
    "created_at": ("oldest first", ("created_at", "pk")),
    "-created_at": ("newest first", ("-created_at", "pk")),
    "-gpus": ("most GPUs first", ("-gpus", "created_at", "pk")),
    "name": ("by namespace and name", ("namespace", "name", "pk")),
}


@dataclass(frozen=True)
class PodFilter:
    q: str = ""  # a part of the name of the pod or of its owner
    cluster: str = ""
    namespace: str = ""
    state: str = ""  # of `fleet.gpu_pods.STATES`
    pool: str = ""  # name or cluster/name of its node's pool; none
    resource: str = ""  # nvidia.com/gpu; claim
    node: str = ""
    owner: str = ""  # Job/train: the topmost watched owner or the pod's own controller; none
    by: str = ""  # workload: a line for each workload; blank: for each pod
    ordering: str = WORST_FIRST

    @classmethod
    def read(cls, query: QueryDict) -> "PodFilter":
        """Reads an address. Unknown values match nothing; an unknown order is the default."""
        longest = {"owner": LONGEST_OWNER}
        given = {name: query.get(name, "").strip()[: longest.get(name, LONGEST)] for name in PARTS}
        ordering = query.get("ordering", "")[:LONGEST]
        by = BY_WORKLOAD if query.get("by", "")[:LONGEST] == BY_WORKLOAD else ""
        return cls(**given, by=by, ordering=ordering if ordering in ORDERS else WORST_FIRST)

    @property
    def active(self) -> list[str]:
        return [name for name in PARTS if getattr(self, name)]

    def without(self, name: str) -> "PodFilter":
        return replace(self, **{name: ""})

    def by_workload(self) -> "PodFilter":
        return replace(self, by=BY_WORKLOAD)

    def by_pod(self) -> "PodFilter":
        return replace(self, by="")

    def with_state(self, state: str) -> "PodFilter":
        return replace(self, state=state)

    def query(self) -> str:
        """Returns the URL's query; blank for all pods in the default order."""
        given = {name: getattr(self, name) for name in (*self.active, *(("by",) if self.by else ()))}
        if self.ordering != WORST_FIRST:
            given["ordering"] = self.ordering
        return urlencode(given, errors="replace")

    def narrow(self, pods: PodQuerySet, *, pools: QuerySet[Pool]) -> PodQuerySet:
        """Filters pods with `shown_state`. `pools` are the visible ones, so that a filter reveals no others."""
        conditions = [Q(**{column: value}) for column, value in self._equal() if value]
        if self.q:
            conditions.append(Q(name__icontains=self.q) | Q(owner_name__icontains=self.q))
        if self.owner:
            conditions.append(self._is_owned())
        if self.state:
            conditions.append(gpu_pods.in_state(self.state))
        if self.pool:
            conditions.append(gpu_pods.on_nodes_of(self.pool, pools))
        if self.resource:
            conditions.append(gpu_pods.asking_for(self.resource))
        return pods.filter(*conditions)

    def ordered(self, pods: PodQuerySet) -> PodQuerySet:
        return pods.order_by(*ORDERS[self.ordering][1])

    def _is_owned(self) -> Q:
        if self.owner == NO_OWNER:
            return Q(owner_name="")
        kind, _, name = self.owner.partition("/")
        where = {"cluster__name": self.cluster, "namespace": self.namespace}
        return belongs_to(kind, name, **{column: value for column, value in where.items() if value})

    def _equal(self) -> tuple[tuple[str, str], ...]:
        return ("cluster__name", self.cluster), ("namespace", self.namespace), ("node_name", self.node)


def page_of_workload(facts: Mapping[str, str]) -> str:
    """Returns the address of the list of a workload's pods, from the facts of a finding."""
    chosen = PodFilter(facts["owner"], facts["cluster"], facts["namespace"])
    return f"{reverse('pods')}?{chosen.query()}"
