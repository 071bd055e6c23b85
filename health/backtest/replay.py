"""Replays findings as `health.evaluation.evaluation_round` writes them, without rows.

A test compares both on the same input.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from health.evaluation.finding_openings import LATELY, SAME_WITHIN
from health.evaluation.signals import Signal
from health.rules.base import Problem, Severity
from health.subjects import identity_of


@dataclass
class WouldBe:
    subject: str
    gpu_uuid: str
    severity: Severity
    fingerprint: str
    sentence: str
    since: datetime
    confirmed_at: datetime
    as_bad_since: datetime | None = None
    worse_since: datetime | None = None
    opened_at: datetime | None = None  # the first time; None: being confirmed
    resolved_at: datetime | None = None
    times: int = 1
    facts: Mapping[str, Any] = field(default_factory=dict)
    worst: Severity | None = None  # highest severity that would have notified
    last_sentence: str = ""  # its last sentence; blank: no notification

    @property
    def identity(self) -> str:
        return identity_of(self.subject, self.gpu_uuid)

    def notify(self) -> None:
        """Notifies people of the current severity."""
        if self.worst is None or not self.severity.is_less_than(self.worst):
            self.worst, self.last_sentence = self.severity, self.sentence

    @property
    def would_page(self) -> bool:
        return self.worst is Severity.CRITICAL


@dataclass
class Replay:
    """The replay of one rule.

    `is_exact` means that a fault lasts until the next step, as when every change is recorded.
    """

    is_exact: bool = False
    now: dict[str, WouldBe] = field(default_factory=dict)  # current faults by subject
    lately: dict[str, WouldBe] = field(default_factory=dict)  # the last resolved finding by subject
    opened: list[WouldBe] = field(default_factory=list)  # the oldest first

    def look(
        self, at: datetime, signals: Iterable[Signal], can_resolve: Callable[[WouldBe], bool] = lambda _: True
    ) -> None:
        waiting = dict(self.now)
        for signal in signals:
            waiting.pop(signal.subject.identity, None)
            self._update(signal, at)
        for found in waiting.values():
            if can_resolve(found):
                self._end(found, at)

    def _update(self, signal: Signal, at: datetime) -> None:
        about, problem = signal.subject, signal.problem
        found = self.now.get(about.identity)
        if found is None:
            confirmed_at = at + min(signal.rule.after, signal.after)
            texts = problem.severity, problem.fingerprint, problem.sentence
            found = WouldBe(about.name, about.gpu_uuid, *texts, at, confirmed_at, facts=problem.facts)
            self.now[about.identity] = found
        is_too_soon = _is_worse_too_soon(found, problem, at)
        if not is_too_soon:
            _take(found, problem, at)
        if found.opened_at is None:
            confirmed_at = found.since + signal.rule.after
            if not is_too_soon:
                confirmed_at = min(confirmed_at, (found.as_bad_since or found.since) + signal.after)
            found.confirmed_at = confirmed_at
            if at >= confirmed_at:
                found = self._open(found, confirmed_at if self.is_exact else at)
        if found.opened_at is not None:
            found.notify()

    def _open(self, found: WouldBe, at: datetime) -> WouldBe:
        """Returns the current finding. A recently ended one continues."""
        before = self.lately.pop(found.identity, None)
        ended = before.resolved_at if before else None
        if before and ended and found.since - ended <= SAME_WITHIN and at - ended <= LATELY:
            before.times, before.resolved_at = before.times + 1, None
            before.severity, before.fingerprint, before.sentence = found.severity, found.fingerprint, found.sentence
            before.subject, before.facts = found.subject, found.facts
            before.as_bad_since, before.worse_since = found.as_bad_since, found.worse_since
            self.now[found.identity] = before
            return before
        found.opened_at = at
        self.opened.append(found)
        return found

    def _end(self, found: WouldBe, at: datetime) -> None:
        if found.opened_at is None and self.is_exact and found.confirmed_at < at:
            found = self._open(found, found.confirmed_at)
            found.notify()
        del self.now[found.identity]
        if found.opened_at is not None:
            found.resolved_at = at
            self.lately[found.identity] = found


def _take(found: WouldBe, problem: Problem, at: datetime) -> None:
    if (problem.severity, problem.fingerprint) == (found.severity, found.fingerprint):
        return
    if found.severity.is_less_than(problem.severity):
        found.as_bad_since = found.worse_since or at
    elif problem.severity.is_less_than(found.severity):
        found.as_bad_since = None
    found.worse_since = None
    found.severity, found.fingerprint, found.sentence = problem.severity, problem.fingerprint, problem.sentence
    found.facts = problem.facts


def _is_worse_too_soon(found: WouldBe, problem: Problem, at: datetime) -> bool:
    if not problem.worsens_after:
        return False
    if not found.severity.is_less_than(problem.severity):
        found.worse_since = None
        return False
    found.worse_since = found.worse_since or at
    return at - found.worse_since < problem.worsens_after
