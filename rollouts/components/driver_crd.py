"""The driver, where NVIDIADriver objects say which version a node runs (GPU Operator, NVIDIADriver mode). Pure.

Its unit is the node; its lever is the skip label; its version is `/spec/version` of the object. A rollback is the
same field with the earlier version: the DaemonSet controller finds the earlier template again, so pods that never
changed count as in sync (reference: k8s-operator-libs pkg/upgrade, ProcessDoneOrUnknownNodes).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rollouts.preflight import Check
from wording.numbers import are, count, either

LONGEST = 64
VERSION = re.compile(r"\d+(\.\d+){1,3}", re.ASCII)  # the digits of other scripts are no version to anybody else
WRITE_IT = "Write it as 580.126.20, with the digits 0 to 9."


@dataclass(frozen=True)
class VersionPatch:
    kind: str
    name: str
    path: str
    old: str
    new: str


@dataclass(frozen=True)
class DriverFacts:
    """What is known of the object and its nodes when somebody asks whether a plan may start."""

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
    pre_installed: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    under_way: tuple[str, ...] = field(default=())  # nodes in the middle of another change


@dataclass(frozen=True)
class DriverCrd:
    key: ClassVar[str] = "driver"
    kind: ClassVar[str] = "NVIDIADriver"
    path: ClassVar[str] = "/spec/version"

    name: str

    def patch(self, old: str, new: str) -> VersionPatch:
        return VersionPatch(self.kind, self.name, self.path, old, new)


def is_version(text: str) -> bool:
    return len(text) <= LONGEST and VERSION.fullmatch(text) is not None


def preflight(facts: DriverFacts) -> Iterator[Check]:
    """What makes the lever useless or dangerous (hazards Z2, Z9). None: it may start."""
    if facts.kind != DriverCrd.kind:
        yield Check("not-a-driver-object", f"A {facts.kind} cannot be promoted yet; only NVIDIADriver objects can.")
    if not is_version(facts.to_version):
        yield Check("version", f"“{facts.to_version}” is no full driver version.", WRITE_IT)
    if facts.to_version == facts.object_version:
        yield Check("same-version", f"The object already asks for {facts.to_version}.")
    yield from _mode(facts)
    yield from _policy(facts)
    if facts.owned_by:
        owners = " and ".join(facts.owned_by)
        sentence = f"The object belongs to {owners}, which would write its own version over ours."
        yield Check("owned", sentence, "Change the version there, or take the object out of it first.")
    if not facts.nodes:
        yield Check("no-nodes", "The object runs a driver on no node.")
    if facts.unsettled:
        yield Check("unsettled", f"{facts.unsettled[0]} is not through with its last change.", "Wait until it is.")
    if facts.under_way:
        many = f"{count(len(facts.under_way), 'node')} {are(len(facts.under_way))}"
        yield Check("under-way", f"{many} in the middle of another change.", "Wait until that is through.")


def _mode(facts: DriverFacts) -> Iterator[Check]:
    if not facts.has_policy:
        yield Check("no-policy", "No ClusterPolicy is seen: without one there is no upgrade controller.")
    elif not facts.policy_uses_crd:
        fix = "Set spec.driver.useNvidiaDriverCRD in the ClusterPolicy."
        yield Check("crd-off", "The ClusterPolicy does not use NVIDIADriver objects.", fix)
    if facts.sandbox_workloads:
        yield Check("sandbox", "sandboxWorkloads is on, which switches the upgrade controller off.")
    if facts.use_precompiled:
        yield Check("precompiled", "Precompiled drivers name a branch only: which driver would load is not known.")
    if facts.state not in {"ready", ""}:
        why = facts.message or f"its state is {facts.state}"
        yield Check("not-ready", f"The object is not in order: {why}")
    if facts.pre_installed:
        many = either(len(facts.pre_installed), "1 node brings its", f"{len(facts.pre_installed)} nodes bring their")
        yield Check("pre-installed", f"{many} own driver; it is never managed.")


def _policy(facts: DriverFacts) -> Iterator[Check]:
    policy = facts.upgrade_policy
    if policy.get("autoUpgrade") is not True:
        sentence = "autoUpgrade is not on: without it the operator's upgrade controller changes no node."
        yield Check("auto-upgrade", sentence, "Set upgradePolicy.autoUpgrade to true.")
    if policy.get("maxParallelUpgrades") == 0:
        sentence = "maxParallelUpgrades is 0, which means: as many as there are. A slip would take every node."
        yield Check("parallel", sentence, "Set it to a number.")


def warnings(facts: DriverFacts) -> Iterator[Check]:
    """What may be started, and an approver must see (hazard Z12)."""
    policy = facts.upgrade_policy
    deletion, drain = policy.get("podDeletion") or {}, policy.get("drain") or {}
    if deletion.get("force"):
        sentence = "podDeletion.force is on: unmanaged pods, which no controller makes again, are deleted for good."
        yield Check("force", sentence)
    if deletion.get("deleteEmptyDir") or drain.get("deleteEmptyDir"):
        yield Check("empty-dir", "deleteEmptyDir is on: what pods keep on the node's disk is lost.")
    if drain.get("enable"):
        yield Check("drain", "drain is on: where GPU pods cannot be evicted, the whole node is drained.")
    if not (policy.get("waitForCompletion") or {}).get("podSelector"):
        yield Check("no-wait", "waitForCompletion names no pods: running jobs are not waited for.")
