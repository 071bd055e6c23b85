"""Old decisions of automatic quarantine are deleted, but for those that something open still needs."""

from datetime import timedelta

import pytest

from fleet.models import Node
from fleet.retention import tidy
from maintenance.automatic_round import run_automatic_quarantine
from maintenance.models import AutomaticDecision
from maintenance.triggers import Mode
from tests.maintenance.test_automatic import a_pool_in, strike
from tests.make import NOON, a_case

pytestmark = pytest.mark.django_db
OLD = NOON - timedelta(days=500)


def test_an_old_decision_goes_once_its_finding_and_its_case_are_over():
    pool = a_pool_in(Mode.SHADOW)
    strike(pool, 1)
    run_automatic_quarantine(now=NOON)
    decision = AutomaticDecision.objects.get()
    AutomaticDecision.objects.update(at=OLD)
    tidy(now=NOON)
    assert AutomaticDecision.objects.exists(), "its finding is open: it would be decided again"

    case = a_case(Node.objects.get(name="gpu-1"))
    pool.cluster.findings.update(state="resolved", resolved_at=OLD)
    AutomaticDecision.objects.update(case=case)
    tidy(now=NOON)
    assert AutomaticDecision.objects.filter(pk=decision.pk).exists(), "its case is open"

    AutomaticDecision.objects.create(
        automatic=decision.automatic, at=NOON, node_uid="x", node_name="x", trigger="gsp", verdict="acted"
    )
    type(case).objects.update(state="closed")
    tidy(now=NOON)
    assert [row.node_name for row in AutomaticDecision.objects.all()] == ["x"], "the new one stays"
