"""Whether the GPU operator runs, from rows through the preview, the start and the sentence of why a plan stands."""

import pytest

from fleet.models import Bookmark, Workload
from kube.resources import DEPLOYMENTS
from rollouts.commands.plan_start import start
from rollouts.commands.preview import preview
from rollouts.commands.refusals import Blocked
from rollouts.queries.plan_view import plan_on_page
from tests.make import NOON, an_operator
from tests.rollouts.rows import a_draft, a_started_plan, in_state


def codes(plan) -> tuple[set[str], set[str]]:
    said = preview(plan, now=NOON)
    return {check.code for check in said.blockers}, {check.code for check in said.warnings}


def unseen(cluster, **given) -> None:
    Bookmark.objects.filter(cluster=cluster, kind=DEPLOYMENTS.name).update(**given)


def test_a_plan_does_not_start_while_the_operator_is_down(cluster, owner):
    an_operator(cluster, ready=0)
    plan = a_draft(cluster, owner)

    with pytest.raises(Blocked, match="The GPU operator does not run"):
        start(plan, actor=owner, reason="It is time.", expected_revision=1, now=NOON)


@pytest.mark.parametrize("given", [{"state": "forbidden"}, {"last_seen_at": NOON.replace(hour=9)}])
def test_what_was_seen_of_it_long_ago_bars_nothing_and_warns(cluster, owner, given):
    an_operator(cluster, ready=0)
    unseen(cluster, **given)

    blockers, warnings = codes(a_draft(cluster, owner))

    assert "operator-down" not in blockers
    assert "operator-unseen" in warnings


def test_one_that_runs_or_that_no_deployment_is_known_of_is_not_spoken_of(cluster, owner):
    plan = a_draft(cluster, owner)
    assert codes(plan)[0] == set()
    assert "operator-unseen" not in codes(plan)[1]

    an_operator(cluster)

    assert codes(plan)[0] == set()


@pytest.mark.parametrize("state", ["holding", "promoting", "halted", "rolling-back"])
def test_a_plan_under_way_says_that_the_operator_that_it_waits_for_is_down(cluster, owner, state):
    plan = in_state(a_started_plan(cluster, owner), state)
    an_operator(cluster, ready=0)

    on_page = plan_on_page(plan, now=NOON)

    assert [said for said in on_page.besides if said.startswith("The GPU operator does not run")]


def test_it_is_said_once_and_of_no_plan_that_is_over(cluster, owner):
    plan = in_state(a_started_plan(cluster, owner), "holding", is_written=False)
    an_operator(cluster, ready=0)
    plan.waiting_for = f"{plan_on_page(plan, now=NOON).besides[0]} The plan waits until it runs."

    assert plan_on_page(plan, now=NOON).besides == []
    assert plan_on_page(in_state(plan, "aborted"), now=NOON).besides == []


def test_what_was_seen_of_it_long_ago_is_no_reason_to_stand(cluster, owner):
    plan = in_state(a_started_plan(cluster, owner), "promoting")
    Workload.objects.filter(pk=an_operator(cluster, ready=0).pk).update(desired=0)
    unseen(cluster, last_seen_at=NOON.replace(hour=9))

    assert plan_on_page(plan, now=NOON).besides == []
