"""One cause is one finding: which rule's finding explains which other's. Pure: no Django, no I/O."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

# By the rule that is explained, the likeliest cause first: of the same GPU, on the same node, or of its cluster as a
# whole. A cluster that is not seen explains nothing: nothing in it is judged.
EXPLAINED_BY: Mapping[str, tuple[str, ...]] = {
    "allocatable-below-expected": (
        "gpu-silent",
        "gpu-xid",
        "mig-change-stuck",
        "node-not-ready",
        "upgrade-failed",
        "operand-down",
        "paused-operands",
        "operator-down",
    ),
    "gpu-silent": ("gpu-xid",),
    "gpu-ecc-uncorrected": ("gpu-xid",),
    "gpu-row-remap": ("gpu-xid",),
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
    "gpu-throttled": ("gpu-hot",),
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
    ),
    "upgrade-queue-still": ("operator-down",),
    "versions-disagree": ("upgrade-failed",),
    "workload-fails-here": ("node-not-ready", "upgrade-failed", "gpu-silent", "gpu-xid", "operand-down"),
}
ANY_GPU = "any"
OF_A_GPU = "GPU "  # what the subject of a finding about one GPU begins with: GPU 3 of gpu-001


@dataclass(frozen=True)
class Found:
    """A finding that somebody was told of, as far as its cause goes."""

    key: int
    rule: str
    subject: str
    node: int | None  # None: it is about the cluster
    rank: int  # of its severity: 0 is the worst

    @property
    def gpu(self) -> str:
        """Blank: it is about no single GPU."""
        return self.subject if self.node is not None and self.subject.startswith(OF_A_GPU) else ""


def causes(found: Collection[Found], explained_by: Mapping[str, tuple[str, ...]] = EXPLAINED_BY) -> dict[int, int]:
    """By the key of each finding that another explains: the key of that one, which nothing explains.

    Nothing hides what is worse than itself. One pass over the findings, and one over what is explained.
    """
    by_place: dict[tuple[str, int | None, str], Found] = {}
    for one in sorted(found, key=lambda one: (one.rank, one.key), reverse=True):
        by_place[one.rule, one.node, one.gpu] = by_place[one.rule, one.node, ANY_GPU] = one
    nearest: dict[int, Found] = {}
    for one in found:
        for rule in explained_by.get(one.rule, ()):
            there = by_place.get((rule, one.node, one.gpu or ANY_GPU)) or by_place.get((rule, one.node, ""))
            cause = there or by_place.get((rule, None, ANY_GPU))
            if cause is not None and cause.rank <= one.rank and cause.key != one.key:
                nearest[one.key] = cause
                break
    return {key: _root(cause, nearest) for key, cause in nearest.items()}


def _root(cause: Found, nearest: Mapping[int, Found]) -> int:
    seen: set[int] = set()
    while cause.key in nearest and cause.key not in seen:
        seen.add(cause.key)
        cause = nearest[cause.key]
    return cause.key
