"""The trust in automatic quarantine: how long it was tried without an act, and how often people agreed with it.

Order: off, 14 days of shadow mode, suggest, act (lifecycle, section 7). An admin may skip the rest of a trial.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, Q, QuerySet, When

from health.inbox.acts import ACCEPTED, DISMISSED
from maintenance.lifecycle import CaseState
from maintenance.models import AutomaticQuarantine, NodeCase
from maintenance.refusals import CaseRefused
from maintenance.triggers import MODE_ORDER, AutomaticVerdict, Mode
from wording.durations import spell
from wording.instants import to_the_minute

TRIAL = timedelta(days=14)
NEEDS_TRIAL = (Mode.SUGGEST, Mode.ACT)
POOL = "pool"  # key of its trial, beside the keys of rules
JUDGED, ACCEPTED_RATIO = 20, 0.9  # with this many judged decisions, a lower accepted ratio ends mode act
ACCEPTED_IN = (CaseState.IN_REPAIR, CaseState.RETIRED)


@dataclass(frozen=True)
class ShadowTrial:
    """The trial of a pool, or of a rule that was off while the others of its pool were tried."""

    since: datetime | None  # its decisions are recorded since then; None: they are not
    skipped_by: str = ""  # who skipped the rest; blank: nobody did
    skip_reason: str = ""

    @property
    def ends_at(self) -> datetime | None:
        return self.since + TRIAL if self.since else None

    def why_too_short(self, name: str, to: Mode, *, now: datetime) -> str:
        """Returns why the mode needs more of it. Blank: it does not."""
        if to not in NEEDS_TRIAL or self.skipped_by or (self.ends_at and self.ends_at <= now):
            return ""
        needs = f"Mode {to} needs {TRIAL.days} days of shadow mode first."
        skip = "An admin may skip the rest with a reason."
        if self.since is None or self.ends_at is None:
            return f"{needs} Nothing of {name} is recorded yet. {skip}"
        return f"{needs} {name} has {spell(now - self.since)}, and all on {to_the_minute(self.ends_at)}. {skip}"


def trial_of(row: AutomaticQuarantine) -> ShadowTrial:
    """Returns the trial of a pool. Without a stored one it began with the mode at the latest."""
    return _stored(row, POOL) or ShadowTrial(None if row.mode == Mode.OFF else row.mode_since)


def skipped_rules(row: AutomaticQuarantine) -> dict[str, ShadowTrial]:
    """Returns the trials of rules of which somebody skipped the rest, by rule."""
    stored = {rule: _stored(row, rule) for rule in row.trials if rule != POOL}
    return {rule: trial for rule, trial in stored.items() if trial and trial.skipped_by}


def move_trial(
    row: AutomaticQuarantine, was: Mode, to: Mode, *, rule: str = "", actor: str, skip_reason: str, now: datetime
) -> dict[str, dict[str, str]]:
    """Returns the trials after a change of the mode, or of a rule's limit. `skip_reason`: why the rest is skipped.

    :raises CaseRefused: when the trial is too short, and nobody skips the rest
    """
    key, name = (rule, f"Rule {rule}") if rule else (POOL, f"Pool {row.pool.name}")
    trials = {each: trial for each, trial in row.trials.items() if each != key}
    if to == Mode.OFF:
        return trials
    trial = ShadowTrial(now) if was == Mode.OFF else _stored(row, key) if rule else trial_of(row)
    if trial is None:
        return trials  # the rule was tried with its pool
    if MODE_ORDER.index(to) > MODE_ORDER.index(was) and (too_short := trial.why_too_short(name, to, now=now)):
        if not skip_reason:
            raise CaseRefused(too_short)
        trial = ShadowTrial(trial.since or now, actor, skip_reason)
    since = (trial.since or now).isoformat()
    return trials | {key: {"since": since, "skipped_by": trial.skipped_by, "skip_reason": trial.skip_reason}}


def _stored(row: AutomaticQuarantine, key: str) -> ShadowTrial | None:
    if (kept := row.trials.get(key)) is None:
        return None
    return ShadowTrial(datetime.fromisoformat(kept["since"]), kept["skipped_by"], kept["skip_reason"])


@dataclass(frozen=True)
class DecisionAcceptance:
    """The last decisions that people judged, and the number of those that they can still judge."""

    accepted: int
    judged: int  # at most `JUDGED`
    waiting: int

    @property
    def is_too_low(self) -> bool:
        return self.judged >= JUDGED and self.accepted < self.judged * ACCEPTED_RATIO

    @property
    def sentence(self) -> str:
        return f"People accepted {self.accepted} of the last {self.judged} judged decisions."


def acceptance_of(row: AutomaticQuarantine) -> DecisionAcceptance:
    """Returns how often people agreed with what it did, suggested, or would have done. Two queries.

    A person who accepts or dismisses the action of the finding judges the decision, in shadow mode too. Else the case
    does: it is accepted once somebody repairs its node, validates it or retires it. A case that was closed or returned
    without any of these was not accepted. An earlier case is not judged, and neither is one that no person had.
    """
    decisions = with_judgement(row.decisions.exclude(verdict=AutomaticVerdict.BLOCKED))
    judged = decisions.filter(is_judged=True).order_by("-pk").values_list("is_accepted", flat=True)[:JUDGED]
    waiting = decisions.filter(is_judged=False).filter(
        Q(finding__isnull=False, finding__resolved_at=None) | Q(case__in=NodeCase.objects.open())
    )
    return DecisionAcceptance(sum(judged), len(judged), waiting.count())


def with_judgement(decisions: QuerySet[Any]) -> QuerySet[Any]:
    """Adds `is_judged` and `is_accepted`."""
    fed = Q(finding__feedback__in=[ACCEPTED, DISMISSED])
    had_person = Q(case__automatic_at=None) | Q(case__handed_over_at__isnull=False)
    mended = Q(case__passed_at__isnull=False) | Q(case__repaired_at__isnull=False) | Q(case__state__in=ACCEPTED_IN)
    ended = Q(case__isnull=False) & had_person & (mended | Q(case__state__in=[CaseState.CLOSED, CaseState.PROBATION]))
    accepted = Case(
        When(finding__feedback=ACCEPTED, then=True),
        When(finding__feedback=DISMISSED, then=False),
        When(ended & mended, then=True),
        default=False,
    )
    return decisions.annotate(is_judged=Case(When(fed | ended, then=True), default=False), is_accepted=accepted)
