"""A service keeps its level on the changed nodes: a number from the cluster's own Prometheus is within its limits.

The number is compared with absolute limits, and with the same service on the same nodes before their change, or on
unchanged nodes now. The engine asks (`rollouts/engine/service_levels.py`). The window of the number begins after the
change of each node that it is about. A number that is missing, old, of too few samples or without a baseline is a wait.

A number beyond an absolute limit fails at once. A number that is worse than its baseline allows may be chance, since
the gate looks again and again: it holds the next wave, and fails once a sequential test over whole windows proves it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import ClassVar

from health.telemetry.service_levels.definition import ServiceLevelDefinition
from rollouts.gates.base import (
    UNPROVED,
    Evidence,
    Gate,
    GateResult,
    Items,
    Promql,
    ServiceEvidence,
    ServiceLevel,
    TargetEvidence,
    When,
)
from rollouts.gates.results import OVERRIDE, fail, no_target, passed, subject, to_come, wait
from rollouts.gates.sequential_test import ComparedTrial, is_proved, trials_until_proof
from wording.durations import spell
from wording.instants import moment
from wording.numbers import count
from wording.reports import EvidenceItem, instant

PAST, PEERS = "past", "peers"
NO_PROMQL = Promql("")
ASKED_WITHIN = timedelta(minutes=2)  # the engine asks every 30 s
WORSE_BY_CHANCE = 0.1  # of the windows of an unharmed service, at most
WINDOWS_AHEAD = 20
PAST_WINDOWS, MOST_PAST = 6, timedelta(hours=1)
LEAST_WINDOW, MOST_WINDOW = timedelta(minutes=1), timedelta(days=1)
CHECK_QUERY = ("Ask the telemetry source for the expression, and correct it in a new plan.", *OVERRIDE)
MORE_TRAFFIC = ("Send requests to the service on these nodes, or take a longer window.", *OVERRIDE)
SET_LIMIT = ("Set at_most or at_least, and at_most_worse_percent to 0.", *OVERRIDE)
READ_SERVICE = ("Compare the service on changed and unchanged nodes.", "Then roll back, or exclude the node.")


@dataclass(frozen=True)
class Slo(Gate):
    indicator: str = "vllm-ttft-p99"  # a ready-made expression
    expression: Promql = NO_PROMQL  # an own one, which replaces the indicator
    samples: Promql = NO_PROMQL  # base of an own expression, such as requests; blank: the scrapes count
    higher_is_better: bool = False  # of an own expression
    at_most: float = 0  # 0: no limit
    at_least: float = 0
    at_most_worse_percent: int = 20  # than the baseline; 0: not compared
    baseline: str = PAST  # or the unchanged peers
    window: timedelta = timedelta(minutes=5)
    min_samples: int = 20
    max_age: timedelta = timedelta(minutes=2)  # of the newest sample

    key: ClassVar[str] = "slo"
    title: ClassVar[str] = "Service level"
    when: ClassVar[When] = When.THROUGH

    def __post_init__(self) -> None:
        super().__post_init__()
        self.definition  # noqa: B018 - its making checks the expressions
        if not (self.at_most or self.at_least or self.at_most_worse_percent):
            raise ValueError("a limit is needed: at_most, at_least or at_most_worse_percent.")
        if self.at_most and self.at_most < self.at_least:
            raise ValueError("at_most is less than at_least, so no number can pass.")
        if self.baseline not in (PAST, PEERS):
            raise ValueError(f"baseline is {PAST} or {PEERS}.")
        if not LEAST_WINDOW <= self.window <= MOST_WINDOW:
            raise ValueError(f"window_s is from {spell(LEAST_WINDOW)} to {spell(MOST_WINDOW)}.")
        if not self.max_age:
            raise ValueError("max_age_s must be more than 0.")

    @cached_property
    def definition(self) -> ServiceLevelDefinition:
        return ServiceLevelDefinition(
            self.indicator, self.expression, self.samples, is_own_higher_better=self.higher_is_better
        )

    @property
    def past_window(self) -> timedelta:
        """Returns the time before the release that the baseline is measured over: six windows, at most an hour."""
        return max(self.window, min(PAST_WINDOWS * self.window, MOST_PAST))

    @property
    def has_baseline(self) -> bool:
        return self.at_most_worse_percent > 0

    def has_window(self, changed_at: datetime, now: datetime) -> bool:
        """Returns whether a whole window has passed since the change of a node."""
        return now - changed_at >= self.window

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        if not evidence.counted:
            return no_target()
        changed, service = evidence.changed, evidence.services.get(self.key, ServiceEvidence())
        level = service.level
        due = [target for target in changed if self.has_window(target.state_since, now)]
        items = self._items(service, due, evidence)
        unmet = self._unmet(level, items, now=now) if due else None
        if due and unmet is None and level is not None:
            if broken := self._broken_limit(level):
                title = f"{self.measured} is out of its limits"
                return fail(title, broken, cause="out-of-limits", nodes=level.nodes, evidence=items, steps=READ_SERVICE)
            if worse := self._worse(level):
                return self._judge(worse, level, self._trials(service.windows), items)
        if unmet is not None:
            return unmet
        if due and level is not None and (missing := _names_of_targets(due, without=level.nodes)):
            title = f"{subject(missing)} {'is' if len(missing) == 1 else 'are'} not in the last measurement"
            return wait(title, "The next one is due soon.", cause="not-asked", nodes=missing, evidence=items)
        if young := [target for target in changed if not self.has_window(target.state_since, now)]:
            return self._in_window(young, items, now=now)
        if evidence.not_changed or not changed:
            return to_come(evidence, items)
        return passed(f"{self.measured} is within its limits", self._compared(level), evidence=items)

    def is_window(self, level: ServiceLevel, last_at: datetime | None) -> bool:
        """Returns whether a measurement can be compared and its window does not overlap with the last one."""
        is_new = last_at is None or level.asked_at - last_at >= self.window
        return is_new and self.has_baseline and self._unmet(level, (), now=level.asked_at) is None

    def _trials(self, windows: Iterable[ServiceLevel]) -> list[ComparedTrial]:
        return [ComparedTrial(bool(self._worse(level)), WORSE_BY_CHANCE) for level in windows]

    def _judge(self, worse: str, level: ServiceLevel, trials: Sequence[ComparedTrial], items: Items) -> GateResult:
        """Returns FAIL once the windows since the change exclude chance, and WAIT until then."""
        share = f"Worse windows: {sum(trial.is_against for trial in trials)} of {len(trials)}."
        if is_proved(trials):
            title, summary = f"{self.measured} is worse than before", f"{worse} {share}"
            return fail(title, summary, cause="worse", nodes=level.nodes, evidence=items, steps=READ_SERVICE)
        more = trials_until_proof(trials, [ComparedTrial(is_against=True, chance=WORSE_BY_CHANCE)] * WINDOWS_AHEAD)
        shown = (*items, EvidenceItem("Fails after further worse windows", more or f"more than {WINDOWS_AHEAD}"))
        title, summary = f"{self.measured} may be worse than before", f"{worse} {share}"
        return wait(title, summary, cause=UNPROVED, nodes=level.nodes, evidence=shown, steps=(*READ_SERVICE, *OVERRIDE))

    @property
    def measured(self) -> str:
        return self.definition.title

    @property
    def unit(self) -> str:
        return self.definition.unit

    @property
    def is_higher_better(self) -> bool:
        return self.definition.is_higher_better

    def limits(self, baseline: float | None) -> list[tuple[str, float]]:
        """Returns the limits of the value by name."""
        found = [(name, limit) for name, limit in (("At most", self.at_most), ("At least", self.at_least)) if limit]
        if self.has_baseline and baseline:
            worse = abs(baseline) * self.at_most_worse_percent / 100
            limit = baseline - worse if self.is_higher_better else baseline + worse
            found.append((f"{self.at_most_worse_percent} % worse than the baseline", limit))
        return found

    def _items(self, service: ServiceEvidence, due: Iterable[TargetEvidence], evidence: Evidence) -> Items:
        level = service.level
        shown = [
            EvidenceItem("Nodes with a whole window", len(list(due))),
            EvidenceItem("Nodes", len(evidence.counted)),
        ]
        if level is not None:
            if level.value is not None:
                shown.append(EvidenceItem("Value", level.value, self.unit))
            if self.has_baseline and level.baseline is not None:
                shown.append(EvidenceItem(f"Baseline ({_kind(level)})", level.baseline, self.unit))
                if level.value is not None and level.baseline:
                    change = (level.value - level.baseline) / abs(level.baseline) * 100
                    shown.append(EvidenceItem("Change", round(change, 1), "%"))
            shown.append(EvidenceItem("Samples", round(level.samples)))
            if self.has_baseline:
                shown.append(EvidenceItem("Samples of the baseline", round(level.baseline_samples)))
            if level.newest_at is not None:
                shown.append(instant("Newest sample", level.newest_at))
            shown.append(instant("Asked", level.asked_at))
        limits = {"At most": self.at_most, "At least": self.at_least}
        shown += [EvidenceItem(name, limit, self.unit) for name, limit in limits.items() if limit]
        if self.has_baseline:
            shown.append(EvidenceItem("Worse by at most", self.at_most_worse_percent, "%"))
            worse = sum(trial.is_against for trial in self._trials(service.windows))
            shown.append(EvidenceItem("Windows compared (n)", len(service.windows)))
            shown.append(EvidenceItem("Worse windows", worse))
            shown.append(EvidenceItem("Worse by chance at most", WORSE_BY_CHANCE * 100, "% of windows"))
        return (*shown, EvidenceItem("Window", self.window.total_seconds(), "s"))

    def _unmet(self, level: ServiceLevel | None, items: Items, *, now: datetime) -> GateResult | None:
        """Returns WAIT if the measurement is missing or proves nothing; None if it can be compared."""
        if level is None or abs(now - level.asked_at) > ASKED_WITHIN:  # a clock that was set back is as bad as silence
            title = f"{self.measured} has not been measured since"
            return wait(title, "The engine asks the telemetry source.", cause="not-asked", evidence=items)
        if level.trouble:
            shown = (*items, EvidenceItem("Reason", level.trouble))
            title, summary = f"{self.measured} cannot be measured", "A missing value is not a pass."
            return wait(title, summary, cause=level.cause, nodes=level.nodes, evidence=shown, steps=CHECK_QUERY)
        if level.value is None:
            title, summary = f"{self.measured} has no value", "No request, or no such metric, in the window."
            return wait(title, summary, cause="no-value", nodes=level.nodes, evidence=items, steps=MORE_TRAFFIC)
        if level.newest_at is None or now - level.newest_at > self.max_age + (now - level.asked_at):
            title, summary = (
                f"{self.measured} rests on old samples",
                f"The newest must be at most {spell(self.max_age)} old.",
            )
            return wait(title, summary, cause="old-samples", nodes=level.nodes, evidence=items, steps=CHECK_QUERY)
        if level.samples < self.min_samples:
            return self._too_few(level, level.samples, "", items)
        if not self.has_baseline:
            return None
        if level.baseline is None or level.baseline_samples < self.min_samples:
            return self._too_few(level, level.baseline_samples, "The baseline of ", items)
        if level.baseline == 0 and level.value != 0 and not self._breaks_limits(level.value):
            title, summary = f"The baseline of {self.measured} is 0", "A comparison with 0 in percent is impossible."
            return wait(title, summary, cause="zero-baseline", nodes=level.nodes, evidence=items, steps=SET_LIMIT)
        return None

    def _too_few(self, level: ServiceLevel, samples: float, whose: str, items: Items) -> GateResult:
        title = f"{whose}{self.measured} has too few samples"
        summary = f"{count(round(samples), 'sample')} of {self.min_samples} in {spell(self.window)}."
        cause = "few-baseline-samples" if whose else "few-samples"
        return wait(title, summary, cause=cause, nodes=level.nodes, evidence=items, steps=MORE_TRAFFIC)

    def _breaks_limits(self, value: float) -> bool:
        return value < self.at_least or bool(self.at_most and value > self.at_most)

    def _broken_limit(self, level: ServiceLevel) -> str:
        """Returns how the value breaks an absolute limit, as a sentence; empty if it breaks none."""
        value = level.value
        if value is None or not self._breaks_limits(value):
            return ""
        limit = f"at least {self.at_least:g}" if value < self.at_least else f"at most {self.at_most:g}"
        return f"The value is {self._written(value)}. The limit is {limit}."

    def _written(self, value: float) -> str:
        return f"{value:.4g} {self.unit}".rstrip()

    def _worse(self, level: ServiceLevel) -> str:
        """Returns how much worse than its baseline allows the value is, as a sentence; empty if it is not."""
        value, base = level.value, level.baseline
        if value is None or not self.has_baseline or not base:
            return ""
        worse = (base - value if self.is_higher_better else value - base) / abs(base) * 100
        if worse <= self.at_most_worse_percent:
            return ""
        return f"The value is {self._written(value)}: {worse:.0f} % worse than the baseline of {base:.4g}."

    def _in_window(self, young: list[TargetEvidence], items: Items, *, now: datetime) -> GateResult:
        until = max(target.state_since for target in young) + self.window
        nodes = _names_of_targets(young)
        title = f"The window of {subject(nodes)} ends at {moment(until, now=now)}"
        summary = f"A node is measured {spell(self.window)} after its change."
        return wait(title, summary, cause="window", nodes=nodes, evidence=items)

    def _compared(self, level: ServiceLevel | None) -> str:
        if not self.has_baseline or level is None:
            return "The value is compared only with its limits."
        if _kind(level) == PAST:
            return "The value is compared with the same nodes before their change."
        return f"The value is compared with {count(level.baseline_nodes, 'unchanged node')}."


class SecondSlo(Slo):
    """Another objective of the same stage, such as errors beside the time to the first token, or another service."""

    key: ClassVar[str] = "slo_2"
    title: ClassVar[str] = "Service level 2"


class ThirdSlo(Slo):
    """A third objective of the same stage."""

    key: ClassVar[str] = "slo_3"
    title: ClassVar[str] = "Service level 3"


SLOS: tuple[type[Slo], ...] = (Slo, SecondSlo, ThirdSlo)


def _kind(level: ServiceLevel) -> str:
    """Returns the kind of the baseline that was measured."""
    return PEERS if level.baseline_nodes else PAST


def _names_of_targets(targets: Iterable[TargetEvidence], *, without: Iterable[str] = ()) -> tuple[str, ...]:
    left = set(without)
    return tuple(target.name for target in targets if target.name not in left)
