"""The sentence of kube-scheduler about a pod that fits no node, read into counts. Pure.

FitError.Error of kubernetes, pkg/scheduler/framework/types.go: `0/N nodes are available: [text. ][COUNT REASON, …. ]
[text of preemption]`. The texts of the plugins are those of Kubernetes 1.30 to 1.36. A node that lacks several
resources is counted for each. KAI, pkg/scheduler/api: `no nodes with enough resources were found: COUNT REASON.`,
one line for each reason.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

LONGEST = 10_000  # characters that are read
BEGIN = re.compile(r"^0/(\d{1,9}) nodes are available: ")
PART = re.compile(r"(\d{1,9}) (.+?)(?=, \d{1,9} |$)", re.DOTALL)
TAIL = re.compile(r"(?:no new claims to deallocate, )?preemption: ")
INSUFFICIENT = "Insufficient "
OF_KAI = re.compile(r"no nodes with enough resources were found: ")
LACKS_OF_KAI = re.compile(r"node\(s\) didn't have enough (?:resources|of mig profile): (.+?)[. ]*$")
RESOURCES_OF_KAI = {"GPUs": "nvidia.com/gpu", "CPU cores": "cpu"}
CORDON, TAINT, AFFINITY, PODS = "cordon", "taint", "affinity", "resource:pods"
PORTS, SPREAD, POD_AFFINITY, VOLUME, VOLUMES_PER_NODE = "ports", "spread", "pod-affinity", "volume", "volume-limit"
CLAIM, DRIVER_OF_VOLUMES = "claim", "volume-driver"
WITHOUT_DRIVER = "CSI driver is not installed on the node"  # after the name of the driver, from 1.35 on
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"  # some schedulers count it for each node
# Prefixes of the scheduler's reasons, and their kinds.
REASONS: tuple[tuple[str, str], ...] = (
    ("node(s) were unschedulable", CORDON),
    ("node(s) had untolerated taint", TAINT),
    ("node(s) had taint", TAINT),  # before 1.20
    ("node(s) didn't match Pod's node affinity/selector", AFFINITY),
    ("node(s) didn't match node selector", AFFINITY),
    ("node(s) didn't satisfy plugin(s) [NodeAffinity]", AFFINITY),
    ("Too many pods", PODS),
    ("node(s) didn't have free ports", PORTS),
    ("node(s) didn't match pod topology spread", SPREAD),
    ("node(s) didn't match pod affinity", POD_AFFINITY),
    ("node(s) didn't match pod anti-affinity", POD_AFFINITY),
    ("node(s) didn't satisfy existing pods anti-affinity", POD_AFFINITY),
    ("node(s) didn't find available persistent volumes", VOLUME),
    ("node(s) had volume node affinity conflict", VOLUME),
    ("node(s) didn't match PersistentVolume's node affinity", VOLUME),
    ("node(s) did not have enough free storage", VOLUME),
    ("node(s) unavailable due to", VOLUME),
    ("node(s) had no available volume zone", VOLUME),
    ("node(s) had no available disk", VOLUME),
    ("node has pod using PersistentVolumeClaim", VOLUME),
    ("node(s) exceed max volume count", VOLUMES_PER_NODE),
    (UNBOUND, VOLUME),
    ("cannot allocate all claims", CLAIM),
    ("resourceclaim not available on the node", CLAIM),
    ("timed out trying to allocate devices", CLAIM),
)
TITLES: Mapping[str, str] = {
    CORDON: "cordoned nodes",
    TAINT: "untolerated taints",
    AFFINITY: "node selector or affinity",
    PODS: "the limit of pods per node",
    PORTS: "host ports in use",
    SPREAD: "topology spread constraints",
    POD_AFFINITY: "affinity to other pods",
    VOLUME: "volumes",
    VOLUMES_PER_NODE: "the limit of volumes per node",
    DRIVER_OF_VOLUMES: "no CSI driver of the volume",
    CLAIM: "resource claims",
}
VOLUMES = re.compile(r"persistentvolumeclaim|ephemeral volume controller", re.IGNORECASE)


@dataclass(frozen=True)
class SchedulerVerdict:
    nodes: int | None  # that the scheduler knows; None: the sentence has no number
    counts: Mapping[str, int] = field(default_factory=dict)  # rejected nodes by reason
    unknown: Mapping[str, int] = field(default_factory=dict)  # nodes by a text that is not known here
    text: str = ""  # the sentence before its counts, if any
    finds_no_victims: bool = False  # nothing of lower priority is in the way
    preemption: str = ""  # the part about preemption

    @property
    def is_about_volumes(self) -> bool:
        return bool(VOLUMES.search(self.text))


def read_message(message: str) -> SchedulerVerdict | None:
    """Reads the message of the condition PodScheduled. None: it is empty."""
    message = message[:LONGEST].strip()
    if not message:
        return None
    begin = BEGIN.match(message)
    if begin is None:
        return _parse_kai_message(message)
    body, tail = _split_tail(message[begin.end() :])
    counts, unknown, text = Counter[str](), Counter[str](), ""
    for number, part in enumerate(body.split(". ")):
        found = list(PART.finditer(part.rstrip(". ")))
        if not found or found[0].start() != 0:
            text = part if number == 0 else text
            continue
        for each in found:
            key = kind_of(each[2])
            (counts if key else unknown)[key or each[2]] += int(each[1])
            text = text or (each[2] if each[2].startswith(UNBOUND) else "")
    return SchedulerVerdict(
        int(begin[1]), counts, unknown, text.rstrip(". "), "No preemption victims found" in tail, tail.strip()
    )


def _parse_kai_message(message: str) -> SchedulerVerdict:
    """Returns the counts of KAI's message, if it has any."""
    begin = OF_KAI.search(message)
    counts, unknown = Counter[str](), Counter[str]()
    for line in re.split(r"\n|, (?=\d)", message[begin.end() :]) if begin else ():
        if each := PART.match(line.strip(" .")):
            key = kind_of(each[2])
            (counts if key else unknown)[key or each[2]] += int(each[1])
    return SchedulerVerdict(None, counts, unknown, message[: begin.start()].strip() if begin else message)


def kind_of(reason: str) -> str:
    """Returns the kind of a reason. Blank: unknown."""
    if reason.startswith(INSUFFICIENT):
        return f"resource:{reason.removeprefix(INSUFFICIENT).strip()}"
    if lacks := LACKS_OF_KAI.match(reason):
        return f"resource:{RESOURCES_OF_KAI.get(lacks[1], lacks[1])}"
    if reason.rstrip(".").endswith(WITHOUT_DRIVER):
        return DRIVER_OF_VOLUMES
    return next((kind for beginning, kind in REASONS if reason.startswith(beginning)), "")


def title_of_kind(kind: str) -> str:
    return TITLES.get(kind) or f"insufficient {kind.removeprefix('resource:')}"


def agreement(ours: Mapping[str, int], theirs: SchedulerVerdict) -> float | None:
    """Returns the share of the scheduler's counts that ours confirm, from 0 to 1. None: it has no counts."""
    total = sum(theirs.counts.values()) + sum(theirs.unknown.values())
    if not total:
        return None
    return sum(min(number, ours.get(kind, 0)) for kind, number in theirs.counts.items()) / total


def _split_tail(text: str) -> tuple[str, str]:
    found = TAIL.search(text)
    return (text[: found.start()].rstrip(), text[found.start() :]) if found else (text, "")
