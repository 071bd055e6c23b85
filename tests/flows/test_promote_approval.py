"""Who lets a stage go, on what they saw."""

from collections.abc import Callable

import pytest

from demo.visitor import Visitor
from tests.flows.plans import Plan, canary, refused, the_others

pytestmark = [pytest.mark.promote, pytest.mark.nightly]


@pytest.fixture
def plan(plan_for: Callable[[], Plan]) -> Plan:
    return plan_for().draft(canary(), the_others()).start().until_opening()


def test_only_somebody_else_may_approve_and_only_what_they_saw(plan: Plan, viewer: Visitor):
    by_author = refused(lambda: plan.approve(by=plan.operator))
    by_viewer = refused(lambda: plan.approve(by=viewer))
    on_another_bundle = refused(lambda: plan.approve(bundle_hash="0" * 64))

    assert (by_author.status, by_viewer.status, on_another_bundle.status) == (403, 403, 409)
    assert plan.released() == []


def test_what_was_seen_before_an_exclusion_cannot_be_approved(plan_for: Callable[[], Plan]):
    plan = plan_for().draft(canary(2), the_others()).start().until_opening()
    seen = plan.bundle()
    kept, left_out = plan.stage(0)["targets"]
    plan.operator.post(f"/api/v1/targets/{left_out['id']}/exclusions", {"reason": "It is needed tonight."})

    stale = refused(lambda: plan.approve(bundle_hash=seen["hash"]))

    assert stale.status == 409
    assert plan.bundle()["content"]["targets"] == [kept["node"]]
    assert plan.released() == []
