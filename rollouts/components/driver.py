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

from gpu.evictions import read_policy
from gpu.labels import UPGRADE_SKIP
from gpu.operands import DRIVER
from gpu.upgrade_controller import UPGRADE_DONE, UPGRADE_FAILED, UPGRADE_REQUIRED, parallel_of, unavailable_of
from gpu.versions import same
from rollouts.checks import Check
from rollouts.components.base import FieldPatch, NodeLabel, Phase, ReleaseAct, RemoveLabel, Unit
from rollouts.components.terms import BY_LABEL, HoldWords
from rollouts.components.throttle import ControllerOff, Throttle, operator_room
from wording.lists import names
from wording.numbers import are, count, either

LONGEST = 64
VERSION = re.compile(r"\d+(\.\d+){1,3}", re.ASCII)  # the digits of other scripts are no version to anybody else
WRITE_IT = "Write it as 580.126.20, with the digits 0 to 9."
PHASES = {
    "": Phase.UNKNOWN,
    UPGRADE_REQUIRED: Phase.QUEUED,
    UPGRADE_FAILED: Phase.FAILED,
    UPGRADE_DONE: Phase.DONE,
}
# The version is what a plan changes; the others say who takes the template and how fast, not what it is.
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
    unrecorded: tuple[str, ...] = ()  # driver DaemonSets of which no revision is seen
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
    hold: ClassVar[NodeLabel | None] = NodeLabel(UPGRADE_SKIP, "true")
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
        return is_in_sync and same(loaded, wanted)

    def no_rollback(self, version: str) -> str:
        """Returns why no rollback is possible: it needs the name of the previous version, which nodes then report."""
        if not version:
            return "The object names no version: the operator's own default runs, and no name leads back to it."
        if not is_version(version):
            return f"The object names {version[:LONGEST]}, which no node names as loaded: nobody could tell it is back."
        return ""

    def preflight(self, facts: DriverFacts) -> Iterator[Check]:
        """Yields what makes the hold label useless or dangerous (Z2, Z9)."""
        if not is_version(facts.to_version):
            yield Check("version", f"“{facts.to_version}” is no full driver version.", WRITE_IT, field="to_version")
        if facts.to_version == facts.object_version:
            sentence = f"The object already asks for {facts.to_version}."
            yield Check("same-version", sentence, "Name another version.", field="to_version")
        if reason := self.no_rollback(facts.object_version):
            yield Check("no-rollback", reason, "Name the version that runs now in the object, then draft anew.")
        yield from self._mode(facts)
        yield from _nodes(facts)
        yield from _policy(facts)

    def warnings(self, facts: DriverFacts) -> Iterator[Check]:
        return _warnings(facts)

    def _mode(self, facts: DriverFacts) -> Iterator[Check]:
        """Yields a blocker if another object sets the driver version."""
        raise NotImplementedError


SANDBOXED = ControllerOff("sandboxWorkloads is on", "Switch it off in the ClusterPolicy")
NO_AUTO_UPGRADE = ControllerOff("autoUpgrade is off", "Switch it on")
NO_OBJECT = ControllerOff("The driver object is gone", "Make it again")


def is_version(text: str) -> bool:
    return len(text) <= LONGEST and VERSION.fullmatch(text) is not None


def _nodes(facts: DriverFacts) -> Iterator[Check]:
    if facts.sandbox_workloads:
        sentence = "sandboxWorkloads is on, which switches the upgrade controller off."
        yield Check("sandbox", sentence, f"{SANDBOXED.fix}.")
    if facts.use_precompiled:
        sentence = "Precompiled drivers name a branch only: which driver would load is not known."
        yield Check("precompiled", sentence, "Set usePrecompiled to false and a full version, or change it by hand.")
    yield from _state(facts)
    if facts.pre_installed:
        many = either(len(facts.pre_installed), "1 node brings its", f"{len(facts.pre_installed)} nodes bring their")
        fix = "Take them out of the object's nodeSelector: their driver changes with their system's packages or image."
        yield Check("pre-installed", f"{many} own driver; it is never managed.", fix)
    if facts.owned_by:
        owners = " and ".join(facts.owned_by)
        sentence = f"The object belongs to {owners}, which would write its own version over ours."
        yield Check("owned", sentence, "Change the version there, or take the object out of it first.")
    if not facts.nodes:
        fix = "Look at its nodeSelector, and at the labels of the nodes that you mean. Else choose another object."
        yield Check("no-nodes", "The object runs a driver on no node.", fix, field="driver_object")
    if facts.unsettled:
        yield Check("unsettled", f"{facts.unsettled[0]} is not through with its last change.", "Wait until it is.")
    if facts.unrecorded:
        sentence = (
            f"No revision of {names(facts.unrecorded)} is seen: nobody could tell that its earlier pods are back."
        )
        yield Check("unrecorded", sentence, "Let Quarterdeck read controllerrevisions.apps, and wait until it has.")
    if facts.under_way:
        many = f"{count(len(facts.under_way), 'node')} {are(len(facts.under_way))}"
        yield Check("under-way", f"{many} in the middle of another change.", "Wait until that is through.")


def _state(facts: DriverFacts) -> Iterator[Check]:
    """Yields checks of the object's status. The operator always writes a state; an empty one means it never ran."""
    if not facts.state and not facts.message:
        sentence = "The operator has not said how the object is: its status names no state."
        yield Check("not-ready", sentence, "Wait until it has looked at it; where it does not, read its log.")
    elif facts.state != "ready":
        why = facts.message or f"its state is {facts.state}"
        yield Check(
            "not-ready", f"The object is not in order: {why}", "Put that right first; the operator's log has more."
        )


def _policy(facts: DriverFacts) -> Iterator[Check]:
    policy = facts.upgrade_policy
    if policy.get("autoUpgrade") is not True:
        sentence = "autoUpgrade is not on: without it the operator's upgrade controller changes no node."
        yield Check("auto-upgrade", sentence, "Set upgradePolicy.autoUpgrade to true.")
    if facts.nodes and unavailable_of(policy, facts.nodes) == 0:
        allowed = policy.get("maxUnavailable")
        sentence = f"maxUnavailable is {allowed}: the operator's upgrade controller changes no node."
        yield Check("unavailable", sentence, "Set upgradePolicy.maxUnavailable to a number, or to a share as in 25%.")
    if parallel_of(policy) == 0:
        sentence = "maxParallelUpgrades is 0, which means: as many as there are. A slip would take every node."
        yield Check("parallel", sentence, "Set it to a number.")


def _warnings(facts: DriverFacts) -> Iterator[Check]:
    """Yields warnings for the approver (Z12)."""
    policy = read_policy(facts.upgrade_policy)
    if policy.pods.is_forced:
        sentence = "podDeletion.force is on: unmanaged pods, which no controller makes again, are deleted for good."
        yield Check("force", sentence, "Set podDeletion.force to false, or tell whose these pods are.")
    if policy.pods.deletes_empty_dir or (policy.drain and policy.drain.deletes_empty_dir):
        sentence = "deleteEmptyDir is on: what pods keep on the node's disk is lost."
        yield Check("empty-dir", sentence, "Set it to false, or tell whose pods keep something there.")
    if policy.drain:
        sentence = "drain is on: where GPU pods cannot be evicted, the whole node is drained."
        yield Check("drain", sentence, "Set upgradePolicy.drain.enable to false where other pods must stay.")
    if not policy.waits_for:
        sentence = "waitForCompletion names no pods: running jobs are not waited for."
        yield Check(
            "no-wait", sentence, "Set its podSelector to the labels of jobs that must end first, with a timeout."
        )
