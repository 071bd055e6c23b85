"""No finding at or above a severity has come on a changed node since its change.

A finding that the node had before its change is subtracted and named. A kind of findings that other nodes have too, or
that came in the 14 days before, is compared by tests that allow a look at every round. As often is no effect, and
proved more often fails. Between them the gate waits and holds the next wave. A finding that nothing is comparable with
fails at once. A critical finding is usual only where chance brings it to one of a hundred rollouts.

The gates on one topic (`xid`, `ecc`, …) are this gate with the findings of some GPU rules, whose metrics must be
measured on every GPU. The rules count from when the driver was loaded (Z22), by the limits of the node's pools.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from fleet.states.node import AT_REST, RECONFIGURING
from health.rules.base import RANKS, Severity
from health.rules.gpus.base import GpuRule
from rollouts.gates.background import FindingComparison, compare_with_past, past_kinds
from rollouts.gates.base import (
    FEWEST_PEERS,
    UNPROVED,
    Evidence,
    FindingEvidence,
    Gate,
    GateResult,
    HealthEvidence,
    Items,
    TargetEvidence,
    When,
)
from rollouts.gates.earlier_findings import FindingKind
from rollouts.gates.first_events import FirstEvents, Firsts
from rollouts.gates.results import OVERRIDE, fail, no_target, passed, subject, to_come, unknown_before, wait
from rollouts.gates.telemetry_fresh import ByNode, reporting, unmeasured
from wording.durations import spell
from wording.numbers import count, either
from wording.reports import EvidenceItem, first_items, instant

READ_FINDING = ("Read the finding on the page of the node.", "Then roll back, or exclude the node.")
CHECK_WORKERS = ("Check the workers of the queue “default”.", *OVERRIDE)
RUNS_WITHIN = timedelta(minutes=2)  # the rules run every 30 s
Pairs = Sequence[tuple[TargetEvidence, FindingEvidence]]


@dataclass(frozen=True)
class NewFindings(Gate):
    severity: str = Severity.CRITICAL.value  # the mildest that counts
    settle: timedelta = timedelta(minutes=2)  # from the change to the first evaluation that counts

    key: ClassVar[str] = "findings"
    title: ClassVar[str] = "Findings"
    when: ClassVar[When] = When.THROUGH
    measured_by: ClassVar[GpuRule | None] = None  # the rule that must have its metrics; None: every rule counts
    also: ClassVar[tuple[str, ...]] = ()  # keys of rules whose findings count too

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.severity not in RANKS:
            raise ValueError(f"severity is one of {', '.join(RANKS)}.")

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        if not evidence.counted:
            return no_target()
        changed = [target for target in evidence.changed if target.is_seen]
        known = [target for target in changed if _has_recorded_findings(target)]
        counted = [(target, one) for target in known for one in self._counted(target.findings)]
        new = [(target, one) for target, one in counted if _is_new(one, target)]
        compared = self._compare(evidence.health, new, known, now=now)
        blamed = [(target, one) for target, one in new if not compared[_kind(one)].is_usual]
        telemetry = {target.name: target.telemetry for target in changed}
        items = (
            EvidenceItem("Changed nodes", len(evidence.changed)),
            EvidenceItem("New findings", len(blamed)),
            *reporting(telemetry),
            *first_items(
                EvidenceItem("Before the change", one.title) for target, one in counted if not _is_new(one, target)
            ),
            *first_items(
                EvidenceItem(compared[_kind(one)].why_usual, one.title)
                for _, one in new
                if compared[_kind(one)].is_usual
            ),
            *(item for its in compared.values() for item in its.items),
            *self._likeness(compared, evidence.health),
        )
        certain = [(target, one) for target, one in blamed if self._is_certain(one, target, evidence.health)]
        if proved := [(target, one) for target, one in certain if compared[_kind(one)].is_proved]:
            return _fails(proved, items)
        if certain:
            return _unproved(certain, items)
        if unknown := tuple(target.name for target in changed if not _has_recorded_findings(target)):
            return unknown_before(unknown, "The list of findings", items)
        if not evidence.changed:
            return to_come(evidence, items)
        if unmet := self.unmeasured(telemetry, evidence.health, items):
            return unmet
        if unmet := self._not_evaluated(changed, evidence.health, items, now=now):
            return unmet
        if blamed:
            return _unconfirmed(blamed, items)
        if evidence.not_changed:
            return to_come(evidence, items)
        title = f"No {'unusual' if new else 'new'} finding on {count(len(evidence.changed), 'changed node')}"
        return passed(title, _input_sentence(evidence.health), evidence=items)

    def unmeasured(self, telemetry: ByNode, health: HealthEvidence | None, items: Items = ()) -> GateResult | None:
        """Returns WAIT for missing telemetry. Without a source, rules about nodes and pods still have their input."""
        if self.measured_by is None and health is not None and not health.has_source:
            return None
        return unmeasured(telemetry, health, by=self.measured_by, items=items)

    def _counted(self, findings: Sequence[FindingEvidence]) -> Iterator[FindingEvidence]:
        rules = self._rules
        for one in findings:
            # A gate on a topic waits for a person where a rule in shadow mode has a finding: it would be blind else.
            is_asked = not one.is_shadow if rules is None else one.rule in rules
            if is_asked and RANKS[one.severity] <= RANKS[self.severity]:
                yield one

    def _compare(
        self, health: HealthEvidence | None, new: Pairs, known: Sequence[TargetEvidence], *, now: datetime
    ) -> dict[FindingKind, FindingComparison]:
        """Returns the comparison of each kind of new findings with unchanged nodes, and with the days before."""
        peers = health.peers if health else {}
        past = health.past if health else None
        are_enough = min(len(known), len(peers)) >= FEWEST_PEERS
        usual = past_kinds(past, self._rules, self.severity) if past else set()
        released = {target.name: target.baseline.at for target in known if target.baseline}
        found: dict[FindingKind, FindingComparison] = {}
        for kind in {_kind(one): None for _, one in new}:
            here, there = Firsts(), Firsts()
            for target, one in new:
                if kind.has(one.rule, one.severity):
                    _note_first(here, target.name, one)
            for name, its in peers.items() if are_enough else ():
                for one in self._counted(its):
                    if kind.has(one.rule, one.severity):
                        _note_first(there, name, one)
            found[kind] = FindingComparison(
                FirstEvents(kind.rule, here, len(known), there, len(peers)) if there else None,
                compare_with_past(kind, here, released, past, tests=len(usual), now=now) if past else None,
            )
        return found

    @property
    def _rules(self) -> frozenset[str] | None:
        """Returns the keys of the rules whose findings count; None: every rule."""
        return frozenset({self.measured_by.key, *self.also}) if self.measured_by else None

    def _likeness(self, compared: Mapping[FindingKind, FindingComparison], health: HealthEvidence | None) -> Items:
        is_shown = health and health.alike and any(one.items for one in compared.values())
        return (EvidenceItem("Compared nodes have", health.alike),) if health and is_shown else ()

    def _is_certain(self, finding: FindingEvidence, target: TargetEvidence, health: HealthEvidence | None) -> bool:
        """Returns whether the finding fails the gate. One that began during the change may still end (Z21)."""
        is_of_now = finding.since >= target.state_since or self._is_evaluated(target, health)
        return finding.is_open and not finding.is_shadow and is_of_now

    def _is_evaluated(self, target: TargetEvidence, health: HealthEvidence | None) -> bool:
        """Returns whether the rules ran with samples from after the change. They leave out nodes that are changing."""
        at = health.evaluated_at if health else None
        is_at_rest = target.upgrade_state in AT_REST and target.mig_config_state not in RECONFIGURING
        return is_at_rest and at is not None and at >= self._ready_at(target)

    def _ready_at(self, target: TargetEvidence) -> datetime:
        """Returns when samples are of after the change, and of after the last restart of the counters."""
        restarted_at = target.telemetry.restarted_at if target.telemetry else None
        return max(target.state_since, restarted_at or target.state_since) + self.settle

    def _not_evaluated(
        self, changed: Sequence[TargetEvidence], health: HealthEvidence | None, items: Items, *, now: datetime
    ) -> GateResult | None:
        at = health.evaluated_at if health else None
        if at is None or abs(now - at) > RUNS_WITHIN:  # a clock that was set back is as bad as silence
            title, shown = "The rules of the cluster do not run", (*items, *([instant("Last run", at)] if at else []))
            summary = "Nobody evaluates the findings of its nodes."
            return wait(title, summary, cause="rules-not-run", evidence=shown, steps=CHECK_WORKERS)
        early = [target for target in changed if not self._is_evaluated(target, health)]
        if not early:
            return None
        nodes = tuple(target.name for target in early)
        # The load of the new driver restarts them too, and is reported a while after the change.
        restarts = [target for target in early if self._ready_at(target) > target.state_since + 2 * self.settle]
        if restarts:
            title = f"GPU counters restarted on {subject([target.name for target in restarts])}"
            summary = f"The samples before that are lost. The gate waits {spell(self.settle)}."
            return wait(title, summary, cause="counters-restarted", nodes=nodes, evidence=items)
        title = f"The findings of {subject(nodes)} are not evaluated yet"
        summary = f"The rules run again {spell(self.settle)} after the change."
        return wait(title, summary, cause="not-evaluated", nodes=nodes, evidence=items)


def _kind(finding: FindingEvidence) -> FindingKind:
    return FindingKind(finding.rule, finding.severity)


def _note_first(firsts: Firsts, node: str, finding: FindingEvidence) -> None:
    firsts[node] = min(firsts.get(node, finding.since), finding.since)


def _has_recorded_findings(target: TargetEvidence) -> bool:
    return target.baseline is not None and target.baseline.findings is not None


def _is_new(finding: FindingEvidence, target: TargetEvidence) -> bool:
    """Returns whether the node did not have the finding before its change, or had a milder one."""
    before = (target.baseline.findings or {}).get(finding.key) if target.baseline else None
    return before is None or RANKS[finding.severity] < RANKS[before]


def _fails(new: Pairs, items: Items) -> GateResult:
    nodes = tuple(dict.fromkeys(target.name for target, _ in new))
    first, rules = new[0][1], sorted({one.rule for _, one in new})
    title = first.title if len(new) == 1 else f"{len(new)} new findings on {subject(nodes)}"
    who, what = either(len(nodes), "The node", "The nodes"), either(len(new), "it", "them")
    summary = f"{who} did not have {what} before the change."
    shown = (*items, *first_items(EvidenceItem(target.name, f"{one.severity}: {one.title}") for target, one in new))
    return fail(title, summary, cause=", ".join(rules), nodes=nodes, evidence=shown, steps=READ_FINDING)


def _unproved(new: Pairs, items: Items) -> GateResult:
    nodes = tuple(dict.fromkeys(target.name for target, _ in new))
    title = f"{count(len(new), 'new finding')} on {subject(nodes)} may be chance"
    summary = "Other nodes have or had such findings too. Too few nodes have one now to tell."
    shown = (*items, *first_items(EvidenceItem(target.name, f"{one.severity}: {one.title}") for target, one in new))
    return wait(title, summary, cause=UNPROVED, nodes=nodes, evidence=shown, steps=(*READ_FINDING, *OVERRIDE))


def _unconfirmed(new: Pairs, items: Items) -> GateResult:
    nodes = tuple(dict.fromkeys(target.name for target, _ in new))
    shown = (*items, *first_items(EvidenceItem(target.name, f"{one.severity}: {one.title}") for target, one in new))
    if all(one.is_shadow for _, one in new):
        title, summary = (
            f"A rule in shadow mode reports {subject(nodes)}",
            "Its findings halt nothing. A person decides.",
        )
        return wait(title, summary, cause="shadow", nodes=nodes, evidence=shown, steps=OVERRIDE)
    title = f"{count(len(new), 'new finding')} on {subject(nodes)} may open"
    summary = "The gate waits until the rule confirms or ends it."
    return wait(title, summary, cause="confirming", nodes=nodes, evidence=shown)


def _input_sentence(health: HealthEvidence | None) -> str:
    if health is None or not health.has_source:
        return "The cluster has no GPU telemetry, so that no rule about GPUs has run."
    return "The rules have run with samples from after the change."
