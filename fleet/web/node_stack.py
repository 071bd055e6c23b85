"""The GPU stack of one node: what should run there, what does, in which version, and why not."""

from collections import defaultdict
from dataclasses import dataclass

from fleet import operands
from fleet.models import DriverObject, Node, Operand, OperandRevision, Pod

ORDER = list(operands.TITLES)


@dataclass(frozen=True)
class OperandLine:
    """One operand on one node."""

    operand: str
    title: str
    glyph: str
    word: str
    because: str
    version: str  # of the image; blank: there is no pod to read it from
    pod: Pod | None
    is_old: bool | None  # made from an older template than the newest; None: not known


def stack_of(node: Node) -> list[OperandLine]:
    """Costs three queries."""
    pods = list(Pod.objects.filter(cluster=node.cluster_id, node_name=node.name).exclude(operand=""))
    newest = newest_revisions(node.cluster_id)
    by_operand: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        by_operand[pod.operand].append(pod)
    lines = [_line(pod, newest) for operand in by_operand for pod in by_operand[operand]]
    selected = [
        row for row in Operand.objects.filter(cluster=node.cluster_id) if selects(row.node_selector, node.labels)
    ]
    absent = {row.operand for row in selected} - set(by_operand)
    lines += [_absent(operand, node) for operand in absent]
    return sorted(lines, key=lambda line: (ORDER.index(line.operand) if line.operand in ORDER else 99, line.title))


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    """Whether a DaemonSet's node selector takes a node. An empty one takes every node."""
    return all(labels.get(key) == value for key, value in selector.items())


def newest_revisions(cluster_id: int) -> dict[str, str]:
    """The hash of the newest template of each DaemonSet, by its UID."""
    rows = OperandRevision.objects.filter(cluster=cluster_id).order_by("revision")
    return dict(rows.values_list("owner_uid", "revision_hash"))


def _line(pod: Pod, newest: dict[str, str]) -> OperandLine:
    hash_now = newest.get(pod.owner_uid)
    is_old = None if not hash_now or not pod.revision_hash else pod.revision_hash != hash_now
    glyph, word = _state(pod)
    return OperandLine(
        operand=pod.operand,
        title=operands.title_of(pod.operand),
        glyph=glyph,
        word=word,
        because=pod.waiting_because,
        version=tag_of(pod.image),
        pod=pod,
        is_old=is_old,
    )


def _state(pod: Pod) -> tuple[str, str]:
    if pod.deleted_at:
        return "changing", "terminating"
    if pod.is_ready:
        return "ok", "ready"
    if pod.phase == "Succeeded":
        return "ok", "done"
    return ("waiting", "pending") if pod.phase == "Pending" and not pod.waiting_because else ("bad", "not ready")


def _absent(operand: str, node: Node) -> OperandLine:
    paused = sorted(key for key, value in node.labels.items() if "nvidia.com/gpu.deploy" in key and value != "true")
    because = f"The node says {paused[0]}={node.labels[paused[0]]}." if paused else "Its DaemonSet selects this node."
    return OperandLine(operand, operands.title_of(operand), "bad", "no pod here", because, "", None, None)


def tag_of(image: str) -> str:
    """The tag of an image; blank where it is named by digest alone."""
    name = image.partition("@")[0]
    last = name.rpartition("/")[2]
    return last.partition(":")[2]


@dataclass(frozen=True)
class Versions:
    """The driver as three independent places tell it. Blank: that place does not say."""

    wanted: str
    wanted_by: str
    rolled_out: str
    running: str
    sentence: str  # what disagrees; blank: nothing does

    @property
    def agree(self) -> bool:
        return not self.sentence


def versions_of(node: Node, stack: list[OperandLine]) -> Versions:
    """Costs one query."""
    wanting = driver_object_of(node)
    pods = [line for line in stack if line.operand == operands.DRIVER and line.pod]
    wanted = wanting.version if wanting else ""
    rolled_out = pods[0].version if pods else ""
    return Versions(
        wanted=wanted,
        wanted_by=str(wanting) if wanting else "",
        rolled_out=rolled_out,
        running=node.driver_version,
        sentence=_disagreement(wanted, rolled_out, node, has_pod=bool(pods)),
    )


def driver_object_of(node: Node) -> DriverObject | None:
    """The object that says which driver this node should run."""
    rows = list(DriverObject.objects.filter(cluster=node.cluster_id))
    drivers = [row for row in rows if row.kind == "NVIDIADriver"]
    if node.driver_owner:
        return next((row for row in drivers if row.name == node.driver_owner), None)
    if chosen := [row for row in drivers if selects(row.node_selector, node.labels)]:
        return chosen[0]
    return next((row for row in rows if row.kind == "ClusterPolicy" and not row.uses_driver_crd), None)


def _disagreement(wanted: str, rolled_out: str, node: Node, *, has_pod: bool) -> str:
    if not has_pod and node.driver_version:
        return "No driver pod on this node: the driver is pre-installed, or its pod is gone."
    if wanted and rolled_out and not rolled_out.startswith(wanted):
        held = " It is held." if node.is_held else ""
        return f"The node's driver pod still has {rolled_out}, where {wanted} is wanted.{held}"
    if node.driver_unknown_since:
        return "The node does not say which driver it runs now; the version shown is the last it said."
    running = node.driver_version
    if rolled_out and running and not rolled_out.startswith(running):
        return f"The pod is of {rolled_out} and the node still says {running}."
    return ""
