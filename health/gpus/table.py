"""The only query layer of the GPU table, for its page, REST and files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Prefetch, QuerySet, prefetch_related_objects

from fleet.allocation.allocations import GpuAllocation
from fleet.allocation.amounts import PODS_READ
from fleet.allocation.gpu_holders import allocated_gpus
from fleet.freshness.observation_state import ClusterObservation, all_observations
from fleet.models import Cluster, Gpu, Node, Pool
from fleet.queries import pool_names
from gpu.resources.names import Vendor
from gpu.resources.physical import COLUMNS as USE_COLUMNS
from health.gpus.faults import FindingSeen
from health.gpus.gpu_filter import GpuFilter
from health.gpus.roster import Roster
from health.gpus.selection import read_roster
from health.inbox.queries import titles
from health.sources.cluster_telemetry import ClusterTelemetry
from health.sources.readings import MetricReading, utilisation
from people.models import User
from wording.numbers import count

OF_GPU = ("node", "index", "product", "memory_mib", "uuid")
# Of its node, which `allocations_on` reads and no column of the table is.
FOR_HOLDERS = ("capacity", "allocatable", "expected", "gpu_vendor", "physical_gpus", *USE_COLUMNS.values())
OF_NODE = (
    "cluster", "name", "layout", "gpu_product", "driver_version", "driver_unknown_since", "mig_strategy", "sharing",
    "sharing_replicas",
)  # fmt: skip
AT_ONCE = 2000  # GPUs whose rows are read together


@dataclass(frozen=True)
class GpuSeen:
    gpu: Gpu
    uuid: str  # blank: nothing has named it yet
    pools: Sequence[str]
    allocations: Sequence[GpuAllocation] | None  # None: pods were never read, or the allocation is unknown
    knows_pods: bool  # whether pods of its cluster were ever read
    may_have_more: bool  # the GPU is shared, and some pods on shared GPUs have no known GPU
    slices: int  # that its exporter has series of
    is_exported_whole: bool  # its exporter names it without slices, but names slices of other GPUs of the node
    finding: FindingSeen | None
    finding_title: str  # title of the finding; blank: no finding
    is_exported: bool  # whether its source ever named it
    metrics: Mapping[str, MetricReading]  # the metrics that were read
    busy_key: str  # the metric that gives the utilisation
    xid_words: str
    observation: ClusterObservation | None  # of its cluster; None: never observed

    @property
    def node(self) -> Node:
        return self.gpu.node

    @property
    def is_seen(self) -> bool:
        """Returns whether its cluster is live. If not, all data is from the last observation."""
        return self.observation is not None and self.observation.is_live

    @property
    def busy(self) -> MetricReading:
        return self.metrics[self.busy_key]

    @property
    def memory_total_mib(self) -> float | None:
        """Returns the memory in MiB from its exporter; None if the exporter does not report free memory."""
        used, free = self.metrics["memory_used_mib"].value, self.metrics["memory_free_mib"].value
        return None if used is None or free is None else used + free

    @property
    def sampled_at(self) -> float | None:
        """Returns the time of the newest sample in seconds since the epoch; None if there is none."""
        return max((read.sampled_at for read in self.metrics.values() if read.sampled_at is not None), default=None)

    @property
    def use(self) -> str:
        """Returns `3 MIG slices`, `8 partitions` or `time-slicing ×4`; empty for a whole GPU."""
        if self.slices:
            return count(self.slices, "partition" if self.node.gpu_vendor == Vendor.AMD else "MIG slice")
        if self.node.mig_strategy and not self.is_exported_whole:
            return f"MIG {self.node.mig_strategy}"
        users = f" ×{self.node.sharing_replicas}" if self.node.sharing_replicas else ""
        return f"{self.node.sharing}{users}" if self.node.sharing else ""


@dataclass(frozen=True)
class GpuTable:
    """The matching GPUs that the user sees. Rows are loaded on demand."""

    roster: Roster
    observations: Mapping[int, ClusterObservation]
    pools: Mapping[int, str]  # that the person sees
    with_pods: frozenset[int]  # clusters whose pods were ever read
    metrics: Sequence[str]  # that are read of each
    now: datetime

    @property
    def total(self) -> int:
        return self.roster.total

    @property
    def without_value(self) -> int:
        """Returns how many otherwise matching GPUs have no value of the filtered metric."""
        return self.roster.without_value

    def __len__(self) -> int:
        return self.roster.matching

    def rows(self, start: int, stop: int) -> list[GpuSeen]:
        """Loads rows with three queries, and those of `allocations_on`."""
        places = self.roster.order[start:stop]
        keys = [self.roster.keys[at] for at in places]
        gpus = {gpu.pk: gpu for gpu in _load_columns(Gpu.objects.filter(pk__in=keys))}
        shown = [(at, gpus[key]) for at, key in zip(places, keys, strict=True) if key in gpus]
        allocated = {each.gpu.pk: each for each in allocated_gpus([gpu for _, gpu in shown], now=self.now)}
        members = pool_names({gpu.node_id for _, gpu in shown}, self.pools)
        found = []
        for at, gpu in shown:
            one, telemetry, board = allocated[gpu.pk], self.roster.telemetry_of(at), self.roster.board(at)
            finding, slices = self.roster.finding(at), 0 if board is None else telemetry.boards.every[board].slices
            whose = {"node": gpu.node.name, "vendor": gpu.node.gpu_vendor}
            metrics = {key: telemetry.read(key, board, **whose, now=self.now.timestamp()) for key in self.metrics}
            xid = metrics["xid"].value
            found.append(
                GpuSeen(
                    gpu=gpu,
                    uuid=self.roster.uuid_of(at) or one.uuid,
                    pools=members.get(gpu.node_id, ()),
                    allocations=one.allocations if gpu.node.cluster_id in self.with_pods else None,
                    knows_pods=gpu.node.cluster_id in self.with_pods,
                    may_have_more=one.may_have_more,
                    slices=slices,
                    is_exported_whole=board is not None
                    and not slices
                    and telemetry.boards.has_slices_on(gpu.node.name),
                    finding=finding,
                    finding_title=titles().get(finding.rule, finding.rule) if finding else "",
                    is_exported=board is not None,
                    metrics=metrics,
                    busy_key=utilisation(metrics)[0],
                    xid_words=telemetry.xid_words(board, xid) if board is not None and xid is not None else "",
                    observation=self.observations.get(gpu.node.cluster_id),
                )
            )
        return found

    def every(self) -> Iterator[GpuSeen]:
        for start in range(0, len(self), AT_ONCE):
            yield from self.rows(start, start + AT_ONCE)

    def sources(self, clusters: Mapping[int, str]) -> list[tuple[str, ClusterTelemetry]]:
        return [(clusters[key], each) for key, each in self.roster.telemetry.items() if key in clusters]


def _load_columns(gpus: QuerySet[Gpu]) -> QuerySet[Gpu]:
    """Loads GPUs with the displayed columns of their nodes, and those that `allocations_on` needs."""
    nodes = Node.objects.select_related("cluster").only(*OF_NODE, *FOR_HOLDERS, "cluster__name")
    return gpus.only(*OF_GPU).prefetch_related(Prefetch("node", nodes))  # a node once, and not with each of its GPUs


def table_of(user: User, wanted: GpuFilter, *, now: datetime, stop: int | None = None) -> GpuTable:
    """Returns the table. `stop` is the number of rows needed, if not all.

    :raises TooWide: with the sentence
    """
    prefetch_related_objects([user], "bindings")  # asked of pools, clusters, GPUs and findings
    pools = dict(Pool.objects.visible_to(user).values_list("pk", "name"))
    with_pods = frozenset(PODS_READ.values_list("cluster", flat=True))
    roster = read_roster(user, wanted, now=now, stop=stop)
    return GpuTable(roster, all_observations(now=now), pools, with_pods, wanted.metrics, now)


def clusters_seen(user: User) -> dict[int, str]:
    return dict(Cluster.objects.visible_to(user).order_by("name").values_list("pk", "name"))
