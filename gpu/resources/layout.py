"""The layout of a node's GPUs (partitioning and sharing), from its labels.

GPU feature discovery (internal/lm/resource.go and mig-strategy.go of k8s-device-plugin): `<resource>.replicas` is 1
for a resource with one user and 0 where sharing does not apply; `<resource>.sharing-strategy` came with MPS, before
which time-slicing was the only one; the product ends in -SHARED unless the resource is renamed to
`<resource>.shared`. Under the strategy `single` the labels of nvidia.com/gpu describe slices, -MIG-INVALID if they
differ; under `mixed` each profile has its own labels. The strategy's label alone cuts nothing: the operator sets it
on every node.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpu import labels as keys
from gpu.resources.clouds import cut_and_shared
from gpu.resources.names import (
    AMD_GPU,
    GPU,
    GPU_MEMORY,
    INTEL_GPUS,
    SHARED,
    VOLCANO,
    WHOLE_PARTITION,
    ResourceKind,
    is_virtual,
    profile_in,
)
from gpu.resources.registered import Registered, users_of

MIXED_PROFILE = re.compile(r"^(nvidia\.com/mig-(.+))\.count$")
TIME_SLICING, MPS, HAMI, BY_MEMORY, UNKNOWN_SHARING = HOW = "time-slicing", "mps", "hami", "memory", "shared"
SHARED_BY_NAME = {VOLCANO: HAMI, GPU_MEMORY: BY_MEMORY}
NVIDIA_DOMAIN = "nvidia.com/"
TEXT_AT_MOST = 200
BOARDS = "boards:"
AMD_PARTS = {"dpx": 2, "tpx": 3, "qpx": 4}  # parts of one board; cpx: as many as it has dies
PROFILES_AT_MOST = 32  # a board supports about a dozen


@dataclass(frozen=True)
class Way:
    """One unit of a resource: its slice profile and sharing."""

    profile: str = ""  # slice profile; blank: a whole GPU
    sharing: str = ""  # one of HOW; blank: one user
    replicas: int | None = None  # users per GPU or slice; None: not shared, or unknown
    is_virtual: bool = False

    @property
    def kind(self) -> ResourceKind:
        if self.is_virtual:
            return ResourceKind.VIRTUAL
        if self.sharing:
            return ResourceKind.SHARE
        return ResourceKind.SLICE if self.profile else ResourceKind.WHOLE

    def __str__(self) -> str:
        shared = f"/{self.sharing}*{self.replicas or ''}" if self.sharing else ""
        return f"{self.profile or 'whole'}{shared}"

    @classmethod
    def read(cls, text: str) -> "Way":
        profile, _, shared = text.partition("/")
        sharing, _, replicas = shared.partition("*")
        return cls("" if profile == "whole" else profile, sharing, int(replicas) if replicas.isdecimal() else None)


@dataclass(frozen=True)
class Layout:
    """The units of each resource. Blank (`not layout`): no labels, so the resource's name decides."""

    ways: Mapping[str, Way] = field(default_factory=dict)  # by resource
    config: str = ""  # of the MIG manager, where slices exist
    boards: int | None = None  # where some are cut; None: unknown

    def __bool__(self) -> bool:
        return bool(self.ways)

    def way(self, name: str) -> Way:
        plain = name.removesuffix(SHARED)
        way = self.ways.get(name) or self.ways.get(plain) or self.ways.get(plain + SHARED)
        if way is None:
            way = Way(profile_in(name), SHARED_BY_NAME.get(name, ""), is_virtual=is_virtual(name))
        if name != plain and not way.sharing:
            return replace(way, sharing=UNKNOWN_SHARING)
        return way

    @property
    def sharing(self) -> str:
        return next((way.sharing for way in self.ways.values() if way.sharing), "")

    def sharing_of(self, names: Iterable[str]) -> str:
        return self.sharing or next((how for name in sorted(names) if (how := self.way(name).sharing)), "")

    @property
    def replicas(self) -> int | None:
        """Returns the users per unit. None: unknown, or different among resources."""
        counts = {way.replicas for way in self.ways.values() if way.sharing}
        return counts.pop() if len(counts) == 1 else None

    @property
    def parts(self) -> int | None:
        """Returns the number of slices per board. None: unknown, or different among boards."""
        return AMD_PARTS.get(self.way(AMD_GPU).profile[:3]) if list(self.ways) == [AMD_GPU] else None

    @property
    def mig_strategy(self) -> str:
        if any(name.startswith(keys.MIG_RESOURCES) for name in self.ways):
            return "mixed"
        return "single" if any(way.profile for name, way in self.ways.items() if name.startswith(GPU)) else ""

    @property
    def is_plain(self) -> bool:
        return all(way.kind is ResourceKind.WHOLE for way in self.ways.values())

    def lacks_boards_of(self, other: "Layout") -> bool:
        return self.boards is not None and other.boards is not None and self.boards < other.boards

    def __str__(self) -> str:
        """Returns a text that is equal for equal layouts and fits its column. `read` restores it unless it was
        truncated."""
        parts = [f"{name.removeprefix(NVIDIA_DOMAIN)}={way}" for name, way in sorted(self.ways.items())]
        if self.boards is not None:
            parts.append(f"{BOARDS}{self.boards}")
        if self.config:
            parts.append(f"@{self.config}")
        text = " ".join(parts)
        if len(text) <= TEXT_AT_MOST:
            return text
        mark = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"{text[: TEXT_AT_MOST - 14].rpartition(' ')[0]} #{mark}"

    @classmethod
    def read(cls, text: str) -> "Layout":
        ways: dict[str, Way] = {}
        config, boards = "", None
        for part in text.split(" "):
            name, is_way, way = part.partition("=")
            if part.startswith("@"):
                config = part[1:]
            elif part.startswith(BOARDS):
                boards = keys.count_in(part.removeprefix(BOARDS))
            elif is_way:
                ways[name if "/" in name else NVIDIA_DOMAIN + name] = Way.read(way)
        return cls(ways, config, boards)


def layout_of(
    labels: Mapping[str, str],
    capacity: Mapping[str, int],
    boards: Sequence[Registered] = (),
) -> Layout:
    """Returns the layout. Blank without labels: no labeller runs, or an upgrade removed its labels.

    `boards` are those that a device plugin registered.
    """
    ways = {
        **_nvidia(labels, capacity),
        **_amd(labels, capacity),
        **_intel(labels, capacity),
        **_hami(capacity, boards),
    }
    has_slices = any(way.profile for way in ways.values())
    if not has_slices:
        return Layout(ways)
    layout = Layout(ways, labels.get(keys.MIG_CONFIG, "")[:63])
    # Under `single` the label counts slices.
    return (
        replace(layout, boards=keys.count_in(labels.get(keys.GPU_COUNT))) if layout.mig_strategy == "mixed" else layout
    )


def product_of(label: str) -> str:
    """Returns the product without the suffixes of sharing and MIG, which are no different product."""
    return label.removesuffix("-SHARED").split("-MIG-", maxsplit=1)[0][:128]


def _nvidia(labels: Mapping[str, str], capacity: Mapping[str, int]) -> dict[str, Way]:
    product = labels.get(keys.GPU_PRODUCT, "")
    if not product:
        return {GPU: way} if (way := _way_of_cloud(labels)) else {}
    _, _, profile = product.removesuffix("-SHARED").partition("-MIG-")
    ways = dict([_way_of_resource(labels, GPU, profile.lower())])
    if ways.get(GPU) == Way():
        ways[GPU] = _way_of_cloud(labels) or _shared_by_plugin(labels, capacity) or Way()
    for key in labels:
        match = MIXED_PROFILE.match(key) if key.startswith(keys.MIG_RESOURCES) else None
        if match and len(ways) <= PROFILES_AT_MOST:
            ways |= dict([_way_of_resource(labels, match[1], match[2])])
    return ways


def _way_of_resource(labels: Mapping[str, str], name: str, profile: str) -> tuple[str, Way]:
    """Returns the unit under the resource's final name."""
    replicas = keys.count_in(labels.get(f"{name}.replicas")) or 0
    strategy = labels.get(f"{name}.sharing-strategy", "")
    has_suffix = labels.get(f"{name}.product", "").endswith("-SHARED")
    profile = _without_separators(profile)
    if strategy not in (TIME_SLICING, MPS) and replicas < 2 and not has_suffix:
        return name, Way(profile)
    sharing = strategy if strategy == MPS else TIME_SLICING
    return name if has_suffix else name + SHARED, Way(profile, sharing, replicas if replicas > 1 else None)


def _way_of_cloud(labels: Mapping[str, str]) -> Way | None:
    profile, sharing, users = cut_and_shared(labels)
    return Way(_without_separators(profile.lower()), sharing, users) if profile or sharing else None


def _shared_by_plugin(labels: Mapping[str, str], capacity: Mapping[str, int]) -> Way | None:
    """Returns the sharing of a device plugin whose labeller was not configured (gpu-feature-discovery #76).

    One extra unit may also be a GPU that was lost a moment ago.
    """
    way = _oversold(keys.count_in(labels.get(keys.GPU_COUNT)), capacity.get(GPU, 0))
    return way if way and way.replicas else None


def _hami(capacity: Mapping[str, int], boards: Sequence[Registered]) -> dict[str, Way]:
    """Detects sharing by HAMi: more units than boards. The registration outlives the plugin."""
    shared = [name for name in (GPU, VOLCANO) if boards and capacity.get(name, 0) > len(boards)]
    return dict.fromkeys(shared, Way("", HAMI, users_of(boards)))


def _oversold(boards: int | None, amount: int) -> Way | None:
    """Returns a shared unit when there are more units than boards."""
    if not boards or amount <= boards:
        return None
    return Way("", UNKNOWN_SHARING, amount // boards if amount % boards == 0 else None)


def _without_separators(profile: str) -> str:
    """Replaces the separators of a layout's text."""
    return re.sub(r"[\s/=*@#]", "_", profile)[:40]


def _amd(labels: Mapping[str, str], capacity: Mapping[str, int]) -> dict[str, Way]:
    """Returns AMD's partitioning. Under the naming strategy `single` partitions count as amd.com/gpu; only a label
    tells."""
    if AMD_GPU not in capacity:
        return {}
    return {AMD_GPU: Way(_without_separators(amd_partition(labels)))}


def amd_partition(labels: Mapping[str, str]) -> str:
    """Returns the partition, such as cpx_nps4. Blank: whole, or unknown."""
    partition = next((labels[key] for key in keys.AMD_PARTITION if labels.get(key)), "").lower()
    return "" if partition.startswith(WHOLE_PARTITION) else partition


def _intel(labels: Mapping[str, str], capacity: Mapping[str, int]) -> dict[str, Way]:
    """Detects Intel's sharing: the plugin offers each GPU `-shared-dev-num` times, and only device counts reveal it."""
    offered = {name: amount for name in INTEL_GPUS if (amount := capacity.get(name))}
    if len(offered) != 1:
        return {}
    boards = keys.count_in(labels.get(keys.INTEL_COUNT)) or _intel_devices(labels)
    if not boards:
        return {}
    ((name, amount),) = offered.items()
    return {name: _oversold(boards, amount) or Way()}


def _intel_devices(labels: Mapping[str, str]) -> int:
    """Counts GPUs outside the data center series, which are labelled only by PCI class and ID."""
    start, end = keys.INTEL_COUNT_OF_DEVICE
    return sum(keys.count_in(labels[key]) or 0 for key in labels if key.startswith(start) and key.endswith(end))
