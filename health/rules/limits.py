"""Limits for warnings and critical findings, and who set them. Pure.

A rule that compares has its own `Limits`, and a `Scale` on which a person may set others for a pool.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Protocol, runtime_checkable

from health.rules.base import Problem, Severity
from wording.durations import spell
from wording.reports import EvidenceItem

OURS = "Quarterdeck"
A_POOL = "a pool"  # never which: who reads a finding may see its node by another pool
LONGEST = timedelta(days=1)  # longest delay before a notification


@dataclass(frozen=True)
class Limits:
    """Two limits; higher values are worse. A critical finding opens no later than a warning."""

    warn: float
    critical: float | None = None  # None: nothing of it ever is
    warn_after: timedelta = timedelta(0)  # how long it must be so
    critical_after: timedelta = timedelta(0)
    whose: str = OURS

    def is_critical(self, value: float) -> bool:
        return self.critical is not None and value >= self.critical

    def reached(self, value: float) -> float:
        """Returns the highest limit that the value has reached."""
        return self.critical if self.critical is not None and value >= self.critical else self.warn

    def after(self, *, is_critical: bool) -> timedelta:
        return self.critical_after if is_critical else self.warn_after

    @property
    def facts(self) -> dict[str, float | str | None]:
        return {"warn": self.warn, "critical": self.critical, "limits_of": self.whose}

    def evidence(self, unit: str, *, is_critical: bool) -> tuple[EvidenceItem, ...]:
        critical = () if self.critical is None else (EvidenceItem("Limit for critical", self.critical, unit),)
        after = self.after(is_critical=is_critical)
        return (
            EvidenceItem("Limit for a warning", self.warn, unit),
            *critical,
            *((EvidenceItem("Must last", int(after.total_seconds()), "s"),) if after else ()),
            EvidenceItem("Limits set by", self.whose),
        )


@dataclass(frozen=True)
class Scale:
    """The unit and the bounds of limits that a person may set."""

    unit: str  # "°C", "errors an hour"
    least: float
    most: float
    may_be_critical: bool = True
    metric: str = ""  # metric compared with the limit; blank: the growth of a counter is compared
    percent_of: tuple[str, ...] = ()  # metrics whose sum is 100 percent of a limit; empty: the limit is absolute
    is_less: bool = False  # True: the limit is this many percent below the sum

    def level(self, limit: float, facts: Mapping[str, Any]) -> float | None:
        """Returns the limit in the unit of `metric`, to draw it in a chart; None if it cannot be converted."""
        if not self.metric:
            return None
        parts = [facts.get(key) for key in self.percent_of]
        known = [part for part in parts if isinstance(part, int | float)]
        if len(known) < len(parts):
            return None
        percent = 100 - limit if self.is_less else limit
        return percent / 100 * sum(known) if parts else limit

    def problems(self, limits: Limits) -> list[tuple[str, str]]:
        """Returns what is wrong with the limits, each with its field; empty if they are valid."""
        found = [("warn", sentence) for sentence in self._value_problems(limits.warn)]
        if limits.critical is not None:
            found += [("critical", sentence) for sentence in self._value_problems(limits.critical)]
            if not self.may_be_critical:
                found.append(("critical", "This rule has no critical severity. Leave the field empty."))
            elif not limits.warn < limits.critical:
                found.append(("critical", "The critical limit must be above the warning limit."))
        if (
            limits.critical_after > limits.warn_after
        ):  # also without a number: a link that came up again is always critical
            found.append(("critical_after_s", "The critical time must not be longer than the warning time."))
        for name, after in (("warn_after_s", limits.warn_after), ("critical_after_s", limits.critical_after)):
            if not timedelta(0) <= after <= LONGEST:
                found.append((name, f"From 0 s to {spell(LONGEST)}."))
        return found

    def _value_problems(self, value: float) -> list[str]:
        is_within = self.least <= value <= self.most  # no NaN is
        return [] if is_within else [f"From {self.least:g} to {self.most:g} {self.unit}."]


def strictest(several: Sequence[Limits]) -> Limits:
    """Returns the strictest of each number, so that every finding of any of them is reported as early and as severe."""
    warn, warn_after = min(each.warn for each in several), min(each.warn_after for each in several)
    calling = [each for each in several if each.critical is not None] or several
    critical = min((each.critical for each in calling if each.critical is not None), default=None)
    after = min(warn_after, *(each.critical_after for each in calling))
    return Limits(warn, critical, warn_after, after, several[0].whose)


@runtime_checkable
class Comparing(Protocol):
    """A rule with limits that a pool may replace: `replace(rule, limits=…)` is the same rule with others."""

    key: ClassVar[str]
    scale: ClassVar[Scale]

    @property
    def limits(self) -> Limits: ...


def beyond(
    rule: Comparing,
    value: float,
    *,
    title: str,
    summary: str,
    evidence: tuple[EvidenceItem, ...],
    facts: Mapping[str, Any],
    causes: tuple[str, ...] = (),
) -> Problem:
    """Returns the problem of a value that has reached a limit of the rule."""
    limits = rule.limits
    is_critical, limit = limits.is_critical(value), limits.reached(value)
    return Problem(
        severity=Severity.CRITICAL if is_critical else Severity.WARNING,
        title=title,
        summary=summary,
        evidence=(*evidence, *limits.evidence(rule.scale.unit, is_critical=is_critical)),
        causes=causes,
        facts={**facts, **limits.facts},
        identity=f"{limit:g} {limits.whose}",
        worsens_after=limits.critical_after,
        opens_after=limits.after(is_critical=is_critical),
    )
