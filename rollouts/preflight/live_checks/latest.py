"""The latest live check of a plan, for page, REST, commands and preview."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.models.cluster import ClusterMode
from people.rights import Permission, why_not
from rollouts.lifecycle import PlanState
from rollouts.models import LiveCheck, Plan
from rollouts.preflight.live_checks.answers import LiveAnswer, LiveResult
from wording.instants import to_the_second
from wording.numbers import count

TAKEN_BY = timedelta(minutes=2)  # a start that no worker takes in this time is cancelled


@dataclass(frozen=True)
class LiveOnPage:
    """The state of one live check."""

    row: LiveCheck
    answers: list[LiveAnswer]

    @property
    def is_in_force(self) -> bool:
        return self.row.is_in_force

    @property
    def is_of_another_revision(self) -> bool:
        return self.row.answered_revision not in {None, self.row.plan.revision}

    @property
    def bars(self) -> bool:
        return any(answer.bars for answer in self.answers)

    @property
    def overridable(self) -> list[LiveAnswer]:
        return [answer for answer in self.answers if answer.bars and answer.check.may_be_overridden]

    @property
    def sentence(self) -> str:
        """Returns the progress and the result, with its age."""
        row = self.row
        asked = f"{row.asked_by} requested a check at {to_the_second(row.asked_at)}"
        if row.is_in_force:
            return (
                f"{asked}{' for the start' if row.is_start else ''}: a worker is checking the cluster, or "
                "will begin soon."
            )
        if row.answered_at is None:
            return f"{asked}. {self._outcome}"
        against = "against the start" if row.plan.state == PlanState.DRAFT else "against it"
        said = [
            f"{number} {WORDS.get(result, against)}"
            for result in ORDER
            if (number := sum(one.result is result for one in self.answers))
        ]
        given = f"{count(len(self.answers), 'answer')} of {to_the_second(row.answered_at)}: {', '.join(said)}."
        another = " The draft was edited since." if self.is_of_another_revision else ""
        return f"{given}{another} {self._outcome}".rstrip()

    @property
    def _outcome(self) -> str:
        return f"Not started: {self.row.outcome}" if self.row.is_start and self.row.outcome else self.row.outcome


ORDER = (LiveResult.PASSED, LiveResult.WARNED, LiveResult.BARRED, LiveResult.UNANSWERED)
WORDS = {LiveResult.PASSED: "in order", LiveResult.WARNED: "to know", LiveResult.UNANSWERED: "not known"}


def live_on_page(plan: Plan) -> LiveOnPage | None:
    """Returns the latest live check; None if there is none. One query for a stored plan."""
    row = LiveCheck.objects.filter(plan=plan).first() if plan.pk else None
    if row is None or not row.asked_by:  # made by who then lost against another
        return None
    row.plan = plan
    return LiveOnPage(row, [LiveAnswer.of(one) for one in row.answers])


def why_no_live_check(plan: Plan) -> str:
    """Returns why the cluster cannot be checked now; empty if it can."""
    if plan.state not in {PlanState.DRAFT, PlanState.PROMOTING}:
        return f"The plan is {plan.state.replace('-', ' ')}, so its rounds check the cluster themselves."
    cluster = plan.cluster
    if cluster.mode != ClusterMode.OPERATE:
        return f"Quarterdeck may not change {cluster.name}: its mode is {cluster.mode}. It writes nothing there."
    return ""


def why_no_live_check_by(user, plan: Plan) -> str:
    """Returns the same for one person. One query if it can."""
    where = f"cluster {plan.cluster.name}"
    return why_no_live_check(plan) or why_not(user, may_ask_live(plan), cluster_id=plan.cluster_id, where=where)


def may_ask_live(plan: Plan) -> Permission:
    """Returns the permission that is needed: to draft, or to stop for a plan in progress."""
    return Permission.DRAFT if plan.state == PlanState.DRAFT else Permission.STOP


def is_too_late(row: LiveCheck, *, now: datetime) -> bool:
    return now - row.asked_at > TAKEN_BY
