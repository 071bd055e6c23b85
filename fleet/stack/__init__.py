"""What of the GPU stack runs on a node, what does not and why, and which driver version each source names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.models import DriverObject, Node, Operand, OperandRevision, Pod
from fleet.operands import DRIVER, title_of

PAUSED = "paused-for-driver-upgrade"  # a deploy label's value, or its end, while the driver manager is at work


@dataclass(frozen=True)
class OperandOnNode:
    operand: str
    title: str
    is_ready: bool
    is_current: bool | None  # whether the pod is of the newest template; None: not known, or no pod
    ready_since: datetime | None
    restarts: int | None  # None: no pod
    pod: str  # namespace/name; blank: none
    image: str
    because: str  # why it is not ready; blank: it is


@dataclass(frozen=True)
class DriverVersions:
    running: str  # as the node says, or last said; blank: it never did
    running_unknown_since: datetime | None
    pod_image: str  # the driver pod's tag; blank: no pod
    desired: str  # blank: the operator's own default, or no object
    desired_by: str  # "NVIDIADriver a100"; blank: nothing says
    disagreement: str  # in one sentence; blank: those that speak agree


def operands_on(
    node: Node, operands: Iterable[Operand], pods: Iterable[Pod], revisions: Iterable[OperandRevision]
) -> list[OperandOnNode]:
    """Every operand that has a pod here or should have one."""
    newest = _newest(revisions)
    by_owner = {pod.owner_uid: pod for pod in pods if pod.operand}
    found = []
    for daemon_set in operands:
        pod = by_owner.pop(daemon_set.uid, None)
        if pod:
            found.append(_with_pod(pod, newest.get(daemon_set.uid, "")))
        elif because := _why_no_pod(node.labels, daemon_set.node_selector):
            found.append(_without_pod(daemon_set, because))
    orphans = [_with_pod(pod, "") for pod in by_owner.values()]
    return sorted([*found, *orphans], key=lambda row: (row.operand != DRIVER, row.title))


def driver_versions(node: Node, driver_objects: Sequence[DriverObject], pods: Iterable[Pod]) -> DriverVersions:
    source = _driver_object_of(node, driver_objects)
    pod = next((pod for pod in pods if pod.operand == DRIVER), None)
    running = "" if node.driver_unknown_since else node.driver_version
    desired = source.version if source else ""
    tag = tag_of(pod.image) if pod else ""
    return DriverVersions(
        running=node.driver_version,
        running_unknown_since=node.driver_unknown_since,
        pod_image=tag,
        desired=desired,
        desired_by=str(source) if source else "",
        disagreement=_disagreement(running, tag, desired),
    )


def tag_of(image: str) -> str:
    """ "registry:5000/driver:580.95.05-ubuntu22.04@sha256:…" → "580.95.05-ubuntu22.04"; blank where it names none."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def _disagreement(running: str, tag: str, desired: str) -> str:
    """A tag is 580.95.05-ubuntu22.04; a precompiled one is 580-5.15.0-25-generic-ubuntu22.04: only its branch."""
    sources = {"the node runs": running, "its driver pod carries": tag, "the cluster asks for": desired}
    said = {who: version for who, version in sources.items() if version}
    versions = list(said.values())
    if all(_same(one, other) for one in versions for other in versions):
        return ""
    sentence = ", ".join(f"{who} {version}" for who, version in said.items())
    return f"{sentence[0].upper()}{sentence[1:]}."


def _same(one: str, other: str) -> bool:
    short, long = sorted((one.partition("-")[0], other.partition("-")[0]), key=len)
    return long == short or long.startswith(f"{short}.")


def _driver_object_of(node: Node, driver_objects: Sequence[DriverObject]) -> DriverObject | None:
    by_name = {(each.kind, each.name): each for each in driver_objects}
    if node.driver_owner:
        return by_name.get(("NVIDIADriver", node.driver_owner))
    return next((each for each in driver_objects if each.kind == "ClusterPolicy" and not each.uses_driver_crd), None)


def _newest(revisions: Iterable[OperandRevision]) -> dict[str, str]:
    ordered = sorted(revisions, key=lambda row: row.revision)
    return {row.owner_uid: row.revision_hash for row in ordered}


def _with_pod(pod: Pod, newest: str) -> OperandOnNode:
    return OperandOnNode(
        operand=pod.operand,
        title=title_of(pod.operand),
        is_ready=pod.is_ready and pod.deleted_at is None,
        is_current=pod.revision_hash == newest if newest and pod.revision_hash else None,
        ready_since=pod.ready_since if pod.is_ready else None,
        restarts=pod.restarts,
        pod=str(pod),
        image=pod.image,
        because=_why_not_ready(pod),
    )


def _why_not_ready(pod: Pod) -> str:
    if pod.deleted_at is not None:
        return "The pod is being deleted."
    if pod.is_ready:
        return ""
    return pod.waiting_because or f"The pod is {pod.phase or 'in no phase that was seen'} and not ready."


def _without_pod(daemon_set: Operand, because: str) -> OperandOnNode:
    title = title_of(daemon_set.operand)
    return OperandOnNode(daemon_set.operand, title, False, None, None, None, "", daemon_set.image, because)  # noqa: FBT003


def _why_no_pod(labels: Mapping[str, str], selector: Mapping[str, str]) -> str:
    """Blank: the DaemonSet does not want this node, so that nothing is missing."""
    differing = {key: labels.get(key, "") for key, value in selector.items() if labels.get(key) != value}
    if not differing:
        return "No pod on this node, although its DaemonSet selects it."
    if all(value.endswith(PAUSED) for value in differing.values()):
        return "Paused while the driver changes."
    return ""
