"""The open cases in the shift report, as the board shows them."""

from django.urls import reverse

from health.inbox.shift_report import MOST, CaseSection, ReportedCase
from maintenance.lifecycle import CaseFacts
from maintenance.models import NodeCase
from maintenance.queries import facts_of
from people.models import User

AUTOMATIC, ON_CALL = "automatic steps", "whoever is on call"


def open_cases_of(user: User) -> CaseSection:
    """Returns the open cases that the user sees, the longest in their state first."""
    rows = NodeCase.objects.visible_to(user).open().select_related("cluster", "finding").order_by("state_since", "pk")
    cases = list(rows[: MOST + 1])
    facts = facts_of(cases[:MOST])
    left_out = rows.count() - MOST if len(cases) > MOST else 0
    return CaseSection([_reported(case, facts[case.pk]) for case in cases[:MOST]], left_out)


def owner_of(case: NodeCase, facts: CaseFacts) -> str:
    """Returns who does the next step: the automatic steps, the actor of the repair, or a person."""
    if case.is_automatic:
        return AUTOMATIC
    if facts.repair and facts.repair.ends_at_deadline and not facts.repair.is_overdue:
        return facts.repair.by
    if case.handed_over_at:
        return case.handed_over_to or ON_CALL
    return facts.repair.asked_by if facts.repair else case.opened_by


def _reported(case: NodeCase, facts: CaseFacts) -> ReportedCase:
    return ReportedCase(
        number=case.pk,
        path=reverse("case", args=[case.pk]),
        node=case.node_name,
        cluster=case.cluster.name,
        owner=owner_of(case, facts),
        state=facts.title,
        state_since=case.state_since,
        opened_at=case.opened_at,
        reason=case.reason,
        next_step=" ".join(filter(None, (facts.obstacle, facts.next_step))),
    )
