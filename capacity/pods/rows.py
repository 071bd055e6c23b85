"""The rows of the list of GPU pods, for its page and file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.db.models import QuerySet, prefetch_related_objects

from capacity.pods.addresses import namespace_page, workload_page
from capacity.pods.pod_filter import PodFilter
from fleet.freshness.kinds import Freshness
from fleet.gpu_pods import sums_by_state, top_owners, visible_pods
from fleet.models import Pod, Pool
from fleet.models.pod import PodQuerySet
from fleet.pod_reasons import PodReason
from fleet.queries import PodRow, pool_names, see_pods
from fleet.states.pod import CODES, TITLES, PodState
from fleet.web.node_gpus import allocated_to
from fleet.web.states import PodWord, word_of
from gpu.resources import Layout
from people.models import User

BY_NAME = Layout()  # sharing on its future node is unknown
NOT_SHOWN = ("devices",)


@dataclass(frozen=True)
class GpuPodLine:
    row: PodRow
    owner: str  # kind and name of the topmost watched owner; blank: none
    pools: Sequence[str]  # visible pools of its node
    now: datetime

    @property
    def pod(self) -> Pod:
        return self.row.pod

    @property
    def namespace_page(self) -> str:
        return namespace_page(self.pod.cluster_id, self.pod.namespace)

    @property
    def owner_page(self) -> str:
        """Returns the address of the page of its owner. Blank: it has none."""
        owner = self.owner.replace(" ", "/", 1)
        return workload_page(self.pod.cluster_id, self.pod.namespace, owner) if owner else ""

    @property
    def reason(self) -> PodReason | None:
        return self.row.reason

    @property
    def state(self) -> PodState:
        return self.pod.state(now=self.now)

    @property
    def is_live(self) -> bool:
        return self.row.freshness is Freshness.LIVE

    @cached_property
    def word(self) -> PodWord:
        """Returns kubectl's word; of a cluster that is not seen, with its time."""
        return word_of(self.pod, now=self.now, as_of=None if self.is_live else self.row.seen_at or self.pod.changed_at)

    @cached_property
    def asks(self) -> str:
        """Returns the requested GPUs as text, also of a finished pod."""
        layout = Layout.read(self.pod.node.layout) if self.pod.node else BY_NAME
        return allocated_to(self.pod, layout)


@dataclass(frozen=True)
class PodTable:
    """The GPU pods that a user sees and that match a filter."""

    pods: PodQuerySet  # that match, in their order
    every: PodQuerySet  # that the user sees
    wanted: PodFilter
    pools: QuerySet[Pool]  # visible
    now: datetime

    @cached_property
    def counts(self) -> Mapping[PodState, int]:
        """Returns the pods by state that match the rest of the filter, the worst first. One query."""
        found = Counter[int]()
        rows = self.wanted.without("state").narrow(self.every, pools=self.pools)
        for _, code, number, *_ in sums_by_state(rows, "cluster_id"):
            found[code] += number
        return {state: found[code] for state, code in CODES.items() if found[code]}

    def __len__(self) -> int:
        if not self.wanted.state:
            return sum(self.counts.values())
        return next((number for state, number in self.counts.items() if state == self.wanted.state), 0)

    def lines(self, start: int, stop: int) -> list[GpuPodLine]:
        """Reads lines with five queries, and those of the reasons of pods that do not run."""
        keys = list(self.pods.values_list("pk", flat=True)[start:stop])
        rows = Pod.objects.filter(pk__in=keys).select_related("cluster").defer(*NOT_SHOWN).in_bulk()
        found = [rows[key] for key in keys if key in rows]
        prefetch_related_objects(found, "node")  # a node once, and not with each of its pods
        owners = top_owners(found)
        members = pool_names({pod.node_id for pod in found if pod.node_id}, self.pools)
        return [
            GpuPodLine(row, " ".join(filter(None, owners[row.pod.pk])), members.get(row.pod.node_id or 0, ()), self.now)
            for row in see_pods(found, now=self.now)
        ]


def table_of(user: User, wanted: PodFilter, *, now: datetime) -> PodTable:
    """Returns the table. One query, and those of the user's roles."""
    prefetch_related_objects([user], "bindings")
    pools = Pool.objects.visible_to(user)
    pods = visible_pods(user, now=now).tenants()
    return PodTable(wanted.ordered(wanted.narrow(pods, pools=pools)), pods, wanted, pools, now)


def titled(counts: Mapping[PodState, int]) -> list[tuple[PodState, str, int]]:
    """Returns the states with pods, worst first, with their titles."""
    return [(state, TITLES[state], number) for state, number in counts.items()]
