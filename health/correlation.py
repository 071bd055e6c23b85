"""One cause is one finding: which rule's finding explains which other's. Pure: no Django, no I/O."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

# By the rule that is explained, the likeliest cause first: of the same GPU, on the same node, or of its cluster as a
# whole. A cluster that is not seen explains nothing: its findings are not evaluated.
EXPLAINED_BY: Mapping[str, tuple[str, ...]] = {
    "allocatable-below-expected": (
        "gpu-silent",
        "gpu-xid",
        "gpu-called-unhealthy",
        "mig-change-stuck",
        "node-not-ready",
        "upgrade-failed",
        "operand-down",
        "paused-operands",
        "operator-down",
    ),
    "cluster-not-seen": ("cluster-unwatched",),
    "gpu-silent": ("gpu-xid",),
    "gpu-recovery-action": ("gpu-xid",),
    "gpu-fabric": ("gpu-xid",),
    "gpu-ecc-uncorrected": ("gpu-xid",),
    "gpu-row-remap": ("gpu-xid",),
    "gpu-resets": ("gpu-xid", "gpu-row-remap", "gpu-ecc-uncorrected"),
    "gpu-nvlink-errors": ("gpu-xid",),
    "gpu-nvlink-quiet": ("gpu-nvlink-errors", "gpu-xid"),
    "gpu-dcgm-health": (
        "gpu-xid",
        "gpu-row-remap",
        "gpu-ecc-uncorrected",
        "gpu-nvlink-errors",
        "gpu-hot",
        "gpu-pcie-replays",
        "gpu-throttled",
    ),
    "gpu-called-unhealthy": ("gpu-ecc-uncorrected", "gpu-row-remap"),
    "gpu-throttled": ("gpu-hot",),
    "cordon-stale": ("node-not-ready", "upgrade-failed"),
    "device-unhealthy": ("gpu-xid", "gpu-called-unhealthy"),
    "exporter-silent": (
        "node-not-ready",
        "node-flapping",
        "upgrade-failed",
        "operand-down",
        "paused-operands",
        "telemetry-silent",
    ),
    "node-conditions": ("node-not-ready", "gpu-xid"),
    "node-flapping": ("node-not-ready",),
    "operand-down": ("node-not-ready", "node-flapping", "upgrade-failed", "paused-operands"),
    "paused-operands": ("upgrade-failed",),
    "pods-failing": (
        "node-not-ready",
        "node-flapping",
        "gpu-silent",
        "upgrade-failed",
        "upgrade-stuck",
        "operand-down",
        "workload-fails-here",
        "workload-fails-on-some",
    ),
    "pods-not-starting": (
        "node-not-ready",
        "node-flapping",
        "upgrade-failed",
        "upgrade-stuck",
        "operand-down",
        "compute-domain-down",
    ),
    "gpus-never-offered": ("node-not-ready", "upgrade-failed", "operator-down"),
    "compute-domain-down": ("node-not-ready", "node-flapping", "upgrade-failed"),
    "claims-waiting": ("operator-down",),
    "driver-object-stuck": ("operator-down",),
    "cluster-policy-stuck": ("operator-down", "drivers-conflict", "driver-object-stuck"),
    "upgrade-queue-still": ("operator-down",),
    "upgrade-stuck": ("operator-down",),
    "versions-disagree": ("upgrade-failed",),
    "xid-of-unknown-gpu": ("node-not-ready",),
    "workload-fails-here": ("node-not-ready", "upgrade-failed", "gpu-silent", "gpu-xid", "operand-down"),
    "workload-fails-on-some": ("node-not-ready", "upgrade-failed", "gpu-silent", "gpu-xid", "operand-down"),
}
OfPlace = Mapping[tuple[str, int | None, str], "Collection[Found]"]  # by rule, node and GPU, the worst first
OfGpus = Mapping[tuple[str, int | None], "Collection[Found]"]  # findings about single GPUs
OF_A_GPU = "GPU "  # prefix of the subject of a GPU finding: GPU 3 of gpu-001


@dataclass(frozen=True)
class Found:
    """A notified finding, with the fields that decide about its cause."""

    key: int
    rule: str
    gpu: str  # identity of the GPU (`Finding.identity`); blank: not about a single GPU
    node: int | None  # None: it is about the cluster
    rank: int  # of its severity: 0 is the worst
    since: datetime
    muted_at: datetime | None = None  # None: it is not muted
    gpus: int = 1  # GPUs of its node that need findings before they explain it; 0: no GPU explains it

    @property
    def board(self) -> str:
        """The GPU that it is about, also where that is a slice of it."""
        return self.gpu.partition(",")[0]

    def explains(self, other: "Found") -> bool:
        """Returns whether this finding may explain another: no worse one, and if muted no later one."""
        is_later = self.muted_at is not None and other.since > self.muted_at
        return self.key != other.key and self.rank <= other.rank and not is_later


def causes(found: Collection[Found], explained_by: Mapping[str, tuple[str, ...]] = EXPLAINED_BY) -> dict[int, int]:
    """Returns, by key of each explained finding, the key of the finding that explains it.

    One pass over the findings, and one over the explained ones.
    """
    of_place: dict[tuple[str, int | None, str], list[Found]] = defaultdict(list)
    of_gpus: dict[tuple[str, int | None], list[Found]] = defaultdict(list)
    for one in sorted(found, key=lambda one: (one.rank, one.key)):
        of_place[one.rule, one.node, one.gpu].append(one)
        if one.gpu:
            of_gpus[one.rule, one.node].append(one)
    nearest: dict[int, Found] = {}
    for one in found:
        cause = _likeliest_cause(one, explained_by.get(one.rule, ()), of_place, of_gpus)
        if cause is not None:
            nearest[one.key] = cause
    roots = {one.key: _root(nearest[one.key], nearest) for one in found if one.key in nearest}
    return {one.key: roots[one.key].key for one in found if one.key in roots and roots[one.key].explains(one)}


def _likeliest_cause(one: Found, rules: tuple[str, ...], of_place: OfPlace, of_gpus: OfGpus) -> Found | None:
    """The likeliest cause: of its GPU, or of GPUs of its node where they are enough; of its node; of its cluster."""
    wrong = [cause for rule in rules for cause in of_gpus.get((rule, one.node), ()) if cause.explains(one)]
    are_enough = not one.gpu and 0 < one.gpus <= len({cause.board for cause in wrong})
    for rule in rules:
        there = list(of_gpus.get((rule, one.node), ())) if are_enough else []
        for place in ((one.node, one.gpu), (one.node, ""), (None, "")):
            there += of_place.get((rule, *place), ())
        if cause := next((each for each in there if each.explains(one)), None):
            return cause
    return None


def _root(cause: Found, nearest: Mapping[int, Found]) -> Found:
    seen: set[int] = set()
    while cause.key in nearest and cause.key not in seen:
        seen.add(cause.key)
        cause = nearest[cause.key]
    return cause
