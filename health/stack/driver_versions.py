"""The driver's version side by side: asked for, rolled out, running; each with the place that says so."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fleet.models import Node, ResourceSlice
from gpu.labels import AMD_DRIVER_VERSION, DRIVER_VERSION, DRIVER_VERSION_PARTS
from gpu.operands import DRIVER
from gpu.versions import agree, agree_on_driver, is_digest, parse_version
from health.stack.desired import Desired
from health.stack.node_operands import OperandOnNode
from wording.instants import to_the_minute

DRA = frozenset({"gpu.nvidia.com", "gpu.amd.com"})


class DriverVersionRole(StrEnum):
    DESIRED = "desired"
    ROLLED_OUT = "rolled out"
    RUNNING = "running"


@dataclass(frozen=True)
class DriverVersionSource:
    """The version that one place names; if it is empty, the note says why."""

    role: DriverVersionRole
    by: str
    version: str
    note: str = ""
    is_known: bool = True  # False: no longer reported; the version is the last reported one


@dataclass(frozen=True)
class DriverVersions:
    sources: tuple[DriverVersionSource, ...]
    is_pre_installed: bool
    running: str  # reported by the node, now or last; blank: never reported
    running_unknown_since: datetime | None
    pod_image: str  # the driver pod's tag; blank: no pod
    desired: str  # blank: the operator's own default, or no object
    desired_by: str  # such as "NVIDIADriver a100"; blank: unknown
    disagreement: str  # a sentence; blank: all sources agree


def driver_versions(
    node: Node, operands: Iterable[OperandOnNode], slices: Sequence[ResourceSlice] = ()
) -> DriverVersions:
    rows = [row for row in operands if row.operand == DRIVER]
    row = next((each for each in rows if each.pod), rows[0] if rows else None)
    is_pre_installed = bool(row and row.cause and row.cause.key in ("pre_installed", "no_driver_managed"))
    desired = Desired() if is_pre_installed or row is None else row.desired
    offered = _slices(slices)
    running = [_label(node, offered), *offered]
    sources = running if is_pre_installed else [_requested_version(desired), *_rolled_out(row), *running]
    return DriverVersions(
        sources=tuple(sources),
        is_pre_installed=is_pre_installed,
        running=node.driver_version or next((each.version for each in running if each.version), ""),
        running_unknown_since=node.driver_unknown_since,
        pod_image=row.version if row else "",
        desired=desired.version,
        desired_by=desired.by,
        disagreement=_disagreement(sources, node),
    )


def _requested_version(desired: Desired) -> DriverVersionSource:
    if desired.conflict:
        note = (
            "Several objects select this node, so the operator changes nothing. Delete an object, or change "
            "its nodeSelector."
        )
        return DriverVersionSource(
            DriverVersionRole.DESIRED, f"{desired.conflict}, which all select this node", "", note
        )
    if not desired.by:
        return DriverVersionSource(DriverVersionRole.DESIRED, "no driver object selects this node", "")
    note = "" if desired.version else "The object names no version, so the operator's default applies."
    return DriverVersionSource(DriverVersionRole.DESIRED, desired.by, desired.version, note or _limits(desired.version))


def _rolled_out(row: OperandOnNode | None) -> list[DriverVersionSource]:
    if row is None or not row.pod:
        return [
            DriverVersionSource(
                DriverVersionRole.ROLLED_OUT, "image of the driver pod", "", "There is no driver pod on this node."
            )
        ]
    note = _limits(row.version)
    if row.is_current is False:
        note = f"{note} The pod does not have the newest template of its DaemonSet.".strip()
    return [DriverVersionSource(DriverVersionRole.ROLLED_OUT, "image of the driver pod", row.version, note)]


def _limits(version: str) -> str:
    if is_digest(version):
        return "The image is named by a digest, which has no version."
    if parse_version(version).kernel or parse_version(version).is_branch:
        return "Precompiled: the tag names only the driver branch."
    return ""


def _label(node: Node, offered: Sequence[DriverVersionSource]) -> DriverVersionSource:
    by = "label of the node"
    if node.driver_unknown_since:
        since = to_the_minute(node.driver_unknown_since)
        if not node.driver_version:
            return DriverVersionSource(
                DriverVersionRole.RUNNING,
                by,
                "",
                f"No label has shown the version since the watch began ({since}).",
                is_known=False,
            )
        note = f"Unknown since {since}: the label is gone. Its last value was {node.driver_version}."
        return DriverVersionSource(DriverVersionRole.RUNNING, by, node.driver_version, note, is_known=False)
    is_labelled = any(node.labels.get(key) for key in (DRIVER_VERSION, DRIVER_VERSION_PARTS[0], *AMD_DRIVER_VERSION))
    is_of_a_slice = not is_labelled and any(agree(each.version, node.driver_version) for each in offered)
    if is_of_a_slice or not node.driver_version:
        is_nvidia = node.gpu_vendor in ("", "nvidia")
        return DriverVersionSource(
            DriverVersionRole.RUNNING,
            by,
            "",
            "GPU feature discovery has not labelled the node." if is_nvidia else "It says none.",
        )
    return DriverVersionSource(DriverVersionRole.RUNNING, by, node.driver_version)


def _slices(slices: Sequence[ResourceSlice]) -> list[DriverVersionSource]:
    """Returns the DRA driver's devices of the node; only the newest generation of its pool counts."""
    mine = [each for each in slices if each.driver in DRA]
    newest = max((each.pool_generation for each in mine), default=0)
    versions = {
        str(device.get("driver_version"))
        for each in mine
        if each.pool_generation == newest
        for device in each.devices
        if device.get("driver_version")
    }
    return [
        DriverVersionSource(DriverVersionRole.RUNNING, "ResourceSlice of the node", version)
        for version in sorted(versions)
    ]


WORDS = {
    DriverVersionRole.RUNNING: "the node runs",
    DriverVersionRole.ROLLED_OUT: "its driver pod carries",
    DriverVersionRole.DESIRED: "the cluster asks for",
}


def _disagreement(sources: Sequence[DriverVersionSource], node: Node) -> str:
    said = [each for each in sources if each.version and each.is_known]
    if all(_versions_agree(one, other) is not False for one in said for other in said):
        return ""
    running = [each for each in said if each.role is DriverVersionRole.RUNNING]
    if len(running) > 1 and agree(running[0].version, running[1].version) is False:
        parts = [f"the {each.by} has {each.version}" for each in running]
    else:
        first = {each.role: each for each in reversed(said)}
        parts = [f"{WORDS[role]} {first[role].version}" for role in WORDS if role in first]
    sentence = ", ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}.{_expected_difference(node)}"


def _versions_agree(one: DriverVersionSource, other: DriverVersionSource) -> bool | None:
    """Returns whether versions agree.

    A running driver reports only its number; wanted and rolled out are parts of one tag.
    """
    is_running = DriverVersionRole.RUNNING in (one.role, other.role)
    return (agree_on_driver if is_running else agree)(one.version, other.version)


def _expected_difference(node: Node) -> str:
    """Returns why the versions may differ for now."""
    if node.is_held:
        return f" The node is held by {node.held_by}." if node.held_by else " It is held."
    if node.upgrade_state and node.upgrade_state != "upgrade-done":
        return f" The upgrade controller has it in {node.upgrade_state}."
    return ""
