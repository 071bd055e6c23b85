"""The new driver is loaded, as the node itself reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from gpu.upgrade_controller import UPGRADE_DONE, WAIT_FOR_JOBS
from gpu.versions import is_same_version
from rollouts.gates.base import Evidence, Gate, GateResult, TargetEvidence, When
from rollouts.gates.results import fail, passed, sentence_of_first_node, subject, to_come, wait
from rollouts.lifecycle import TargetState
from wording.durations import spell
from wording.numbers import count, either
from wording.reports import EvidenceItem, first_items

READ_LOG: tuple[str, ...] = ("Read the log of the driver pod on the node.",)
WHO = ("Find out who changed the driver.", "Then roll back, or exclude the node.")
END_PODS = ("End these pods.", "Or set waitForCompletion.timeoutSeconds in the driver object.")
REPORT_AGAIN = (  # both read the version when they start, and gpu-feature-discovery once in a while
    "Restart the pod of gpu-feature-discovery, or the kubelet plugin of the DRA driver.",
    "Check which version the node reports then.",
)


@dataclass(frozen=True)
class DriverVersion(Gate):
    timeout: timedelta = timedelta(minutes=30)  # how long a node may be on its way before that is a failure

    key: ClassVar[str] = "driver_version"
    title: ClassVar[str] = "Driver version"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        changed, version = evidence.changed, evidence.to_version
        counts = (
            EvidenceItem("Changed nodes", len(changed)),
            EvidenceItem("Nodes of the stage", len(evidence.counted)),
        )
        if wrong := [t for t in changed if t.driver_version and not is_same_version(t.driver_version, version)]:
            nodes = tuple(target.name for target in wrong)
            title = f"{subject(nodes)} {either(len(nodes), 'runs', 'run')} another driver"
            summary = sentence_of_first_node(nodes, f"driver {wrong[0].driver_version} is loaded instead of {version}")
            items = first_items(EvidenceItem(target.name, target.driver_version) for target in wrong)
            return fail(title, summary, cause="another", nodes=nodes, evidence=items, steps=WHO)
        changing = [target for target in evidence.counted if target.state is TargetState.CHANGING]
        if late := [target for target in changing if now - target.state_since > self.timeout]:
            return self._late(late, version)
        if silent := tuple(t.name for t in changed if not t.driver_version):
            title = f"{subject(silent)} {either(len(silent), 'reports', 'report')} no driver version"
            summary = "GPU feature discovery or the DRA driver reports it."
            return wait(title, summary, cause="silent", nodes=silent, evidence=counts)
        if len(changed) < len(evidence.counted):
            return to_come(evidence, counts)
        title = f"{count(len(changed), 'node')} {either(len(changed), 'runs', 'run')} driver {version}"
        return passed(title, "The nodes report the version themselves.", evidence=counts)

    def _late(self, late: Sequence[TargetEvidence], version: str) -> GateResult:
        """Returns FAIL for late nodes. Without a timeout of its own the operator waits for jobs for ever (Z14)."""
        nodes = tuple(target.name for target in late)
        cause, steps = "late", READ_LOG
        summary = f"The limit is {spell(self.timeout)} for a node."
        jobs = [target.name for target in late if target.upgrade_state == WAIT_FOR_JOBS]
        done = [target for target in late if target.upgrade_state == UPGRADE_DONE and target.driver_version]
        if jobs:
            cause, steps = "late-for-jobs", END_PODS
            summary = f"The operator still waits for pods on {subject(jobs)} to end (waitForCompletion)."
        elif done:
            cause, steps = "late-to-name-it", REPORT_AGAIN
            summary = f"The operator finished on {done[0].name}, but {done[0].driver_version} is reported there."
        return fail(
            f"{subject(nodes)} did not load driver {version} in time",
            summary,
            cause=cause,
            nodes=nodes,
            evidence=first_items(
                EvidenceItem(target.name, target.upgrade_state or "no upgrade state") for target in late
            ),
            steps=steps,
        )
