"""The GPU driver, for both objects that can name its version. Pure.

The operator's upgrade controller changes the nodes, and the skip label keeps it off a node (reference:
k8s-operator-libs pkg/upgrade). A rollback writes the previous version to the same field: the DaemonSet controller finds
the previous template again, so pods that never changed are in sync (ProcessDoneOrUnknownNodes).
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, cast

from gpu.driver_hold import DRIVER_HOLD, NodeLabel
from gpu.evictions import read_policy
from gpu.operands import DRIVER
from gpu.upgrade_controller import UPGRADE_DONE, UPGRADE_FAILED, UPGRADE_REQUIRED, parallel_of, unavailable_of
from gpu.versions import is_same_version
from rollouts.checks import Check, listed
from rollouts.components.base import FieldPatch, Phase, ReleaseAct, RemoveLabel, Unit
from rollouts.components.terms import BY_LABEL, HoldWords
from rollouts.components.throttle import ControllerOff, Throttle, operator_room
from wording.lists import one_or_count
from wording.numbers import are, count, either
from wording.reports import EvidenceItem, fit

LONGEST = 64
VERSION = re.compile(r"\d+(\.\d+){1,3}", re.ASCII)  # the digits of other scripts are no version to anybody else
WRITE_IT = "Write it as 580.126.20, with the digits 0 to 9."
PHASES = {
    "": Phase.UNKNOWN,
    UPGRADE_REQUIRED: Phase.QUEUED,
    UPGRADE_FAILED: Phase.FAILED,
    UPGRADE_DONE: Phase.DONE,
}
# A plan changes the version; the other fields set the template's owner and the pace.
NOT_OF_THE_TEMPLATE = frozenset({"version", "upgradePolicy", "nodeSelector", "default"})


@dataclass(frozen=True)
class DriverFacts:
    """The facts about the driver object and its nodes for the preflight."""

    kind: str
    object_version: str
    to_version: str
    state: str
    message: str
    use_precompiled: bool
    sandbox_workloads: bool
    policy_uses_crd: bool
    has_policy: bool
    upgrade_policy: Mapping[str, Any]
    owned_by: tuple[str, ...]
    nodes: int
    is_driver_off: bool = False  # the ClusterPolicy leaves drivers to the nodes' images
    pre_installed: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    unrecorded: tuple[str, ...] = ()  # driver DaemonSets without an observed revision
    under_way: tuple[str, ...] = ()  # nodes in the middle of another change
    manager_label: str = ""  # of nodes, by which the driver manager stops one more DaemonSet; blank: none is named


@dataclass(frozen=True)
class Driver:
    """The part of a driver component that both objects share."""

    key: ClassVar[str] = "driver"
    kind: ClassVar[str]
    path: ClassVar[tuple[str, ...]]  # of the version, in the object
    unit: ClassVar[Unit] = Unit.NODE
    operand: ClassVar[str] = DRIVER
    hold: ClassVar[NodeLabel | None] = DRIVER_HOLD
    release: ClassVar[ReleaseAct] = RemoveLabel()
    room: ClassVar[Throttle | None] = staticmethod(operator_room)
    says: ClassVar[HoldWords] = BY_LABEL

    name: str

    def patch(self, old: str, new: str) -> FieldPatch:
        return FieldPatch(self.kind, self.name, self.path, old, new)

    def template(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def command(self, version: str) -> str:
        """Returns the shell command that writes the version without Quarterdeck."""
        body = json.dumps(reduce(lambda inner, part: {part: inner}, reversed(self.path), cast("Any", version)))
        resource = self.kind.lower()
        return f"kubectl patch {resource} {shlex.quote(self.name)} --type=merge -p {shlex.quote(body)}"

    def phase(self, state: str, *, has_pod: bool = True, is_in_sync: bool = False) -> Phase:
        """Returns the phase. Every label value that is not listed means that the controller works (nvidia.md 2.2)."""
        return PHASES.get(state, Phase.AT_WORK)

    def is_released(self, *, has_label: bool, has_pod: bool, is_in_sync: bool) -> bool:
        return not has_label

    def has_changed(self, *, wanted: str, loaded: str, is_in_sync: bool) -> bool:
        return is_in_sync and is_same_version(loaded, wanted)

    def no_rollback(self, version: str) -> str:
        """Returns why no rollback is possible: it needs the name of the previous version, which nodes then report."""
        if not version:
            return (
                "The object names no version, so the operator's default runs. A rollback could not name that version."
            )
        if not is_version(version):
            return (
                f"The object names {version[:LONGEST]}, but no node reports it as loaded. A rollback could "
                "not be verified."
            )
        return ""

    def preflight(self, facts: DriverFacts) -> Iterator[Check]:
        """Yields settings that make the hold label useless or dangerous (Z2, Z9)."""
        if not is_version(facts.to_version):
            title = f"“{facts.to_version}” is not a full driver version"
            yield Check("version", title=title, steps=(WRITE_IT,), field="to_version")
        if facts.to_version == facts.object_version:
            title = f"The driver object already requests {facts.to_version}"
            yield Check("same-version", title=title, steps=("Name another version.",), field="to_version")
        if reason := self.no_rollback(facts.object_version):
            steps = ("Name the present version in the driver object.", "Then draft the plan again.")
            yield Check("no-rollback", title="The plan has no way back", summary=reason, steps=steps)
        yield from self._mode(facts)
        yield from _nodes(facts)
        yield from _policy(facts)

    def warnings(self, facts: DriverFacts) -> Iterator[Check]:
        return _warnings(facts)

    def _mode(self, facts: DriverFacts) -> Iterator[Check]:
        """Yields a blocker if another object sets the driver version."""
        raise NotImplementedError


NO_CHANGE = "The operator's upgrade controller changes no node."
SANDBOXED = ControllerOff("sandboxWorkloads is on", "Switch it off in the ClusterPolicy")
NO_AUTO_UPGRADE = ControllerOff("autoUpgrade is off", "Switch it on")
NO_OBJECT = ControllerOff("The driver object is gone", "Make it again")


def is_version(text: str) -> bool:
    return len(text) <= LONGEST and VERSION.fullmatch(text) is not None


def _nodes(facts: DriverFacts) -> Iterator[Check]:
    if facts.sandbox_workloads:
        summary = "Its deletion switches the upgrade controller off."
        yield Check("sandbox", title="sandboxWorkloads is on", summary=summary, steps=(f"{SANDBOXED.fix}.",))
    if facts.use_precompiled:
        yield Check(
            "precompiled",
            title="The driver object uses precompiled drivers",
            summary="A precompiled driver names only a branch. The version that would load is unknown.",
            steps=("Set usePrecompiled to false and a full version.", "Or change the driver by hand."),
        )
    yield from _state(facts)
    if facts.pre_installed:
        many = either(len(facts.pre_installed), "1 node brings its", f"{len(facts.pre_installed)} nodes bring their")
        yield Check(
            "pre-installed",
            title=f"{many} own driver",
            summary="The operator never manages a driver of the node image.",
            evidence=listed("Nodes", facts.pre_installed),
            steps=("Take these nodes out of the object's nodeSelector.",),
        )
    if facts.owned_by:
        yield Check(
            "owned",
            title="Another tool owns the driver object",
            summary="It would write its own version over ours.",
            evidence=listed("Owners", facts.owned_by),
            steps=("Change the version there, or take the object out of that tool first.",),
        )
    if not facts.nodes:
        steps = ("Compare its nodeSelector with the labels of the nodes.", "Or choose another driver object.")
        yield Check("no-nodes", title="The driver object selects no node", steps=steps, field="driver_object")
    if facts.unsettled:
        title = fit("DaemonSet {} has not applied its last change", facts.unsettled[0])
        yield Check("unsettled", title=title, steps=("Wait until it has.",))
    if facts.unrecorded:
        yield Check(
            "unrecorded",
            title=fit("No revision of {} is visible", one_or_count(facts.unrecorded, "driver DaemonSet")),
            summary="A rollback could not be verified without it.",
            evidence=listed("DaemonSets", facts.unrecorded),
            steps=("Let Quarterdeck read controllerrevisions.apps, and wait until the revisions appear.",),
        )
    if facts.under_way:
        many = f"{count(len(facts.under_way), 'node')} {are(len(facts.under_way))}"
        nodes = listed("Nodes", facts.under_way)
        yield Check("under-way", title=f"{many} being changed", evidence=nodes, steps=("Wait until that ends.",))


def _state(facts: DriverFacts) -> Iterator[Check]:
    """Yields checks of the object's status. The operator always writes a state; an empty one means it never ran."""
    if not facts.state and not facts.message:
        steps = ("Wait until the operator has read it.", "Then read the operator's log.")
        yield Check("not-ready", title="The status of the driver object names no state", steps=steps)
    elif facts.state != "ready":
        why = facts.message or f"Its state is {facts.state}."
        state, read_log = (EvidenceItem("Status", why),), ("Correct that first. The operator's log has details.",)
        yield Check("not-ready", title="The driver object is not ready", summary=why, evidence=state, steps=read_log)


def _policy(facts: DriverFacts) -> Iterator[Check]:
    policy = facts.upgrade_policy
    if policy.get("autoUpgrade") is not True:
        steps = ("Set upgradePolicy.autoUpgrade to true.",)
        yield Check("auto-upgrade", title="autoUpgrade is off", summary=NO_CHANGE, steps=steps)
    if facts.nodes and unavailable_of(policy, facts.nodes) == 0:
        allowed = policy.get("maxUnavailable")
        steps = ("Set upgradePolicy.maxUnavailable to a number, or to a share as in 25%.",)
        yield Check("unavailable", title=f"maxUnavailable is {allowed}", summary=NO_CHANGE, steps=steps)
    if parallel_of(policy) == 0:
        summary = "0 means no limit. One mistake would take every node."
        yield Check("parallel", title="maxParallelUpgrades is 0", summary=summary, steps=("Set it to a number.",))


def _warnings(facts: DriverFacts) -> Iterator[Check]:
    """Yields warnings for the approver (Z12)."""
    policy = read_policy(facts.upgrade_policy)
    if policy.pods.is_forced:
        yield Check(
            "force",
            title="podDeletion.force is on",
            summary="Pods without a controller are deleted and not created again.",
            steps=("Set podDeletion.force to false, or inform the owners of these pods.",),
        )
    if policy.pods.deletes_empty_dir or (policy.drain and policy.drain.deletes_empty_dir):
        yield Check(
            "empty-dir",
            title="deleteEmptyDir is on",
            summary="Files that pods keep on the node (emptyDir) are lost.",
            steps=("Set it to false, or inform the owners of these pods.",),
        )
    if policy.drain:
        yield Check(
            "drain",
            title="drain is on",
            summary="A node whose GPU pods cannot be evicted is drained as a whole.",
            steps=("Set upgradePolicy.drain.enable to false where other pods must stay.",),
        )
    if not policy.waits_for:
        yield Check(
            "no-wait",
            title="waitForCompletion names no pods",
            summary="The operator does not wait for running jobs.",
            steps=("Set its podSelector to the labels of jobs that must end first, with a timeout.",),
        )
