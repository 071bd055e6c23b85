import random
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Bookmark
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Hold, PendingCommand, Plan, Stage, StageKind, Target
from rollouts.models.target import Shown
from tests import make
from tests.pages import HOSTILE, page, visiting
from tests.rollouts.rows import in_state

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def test_lists_what_is_under_way_what_is_drafted_and_why():
    make.a_plan(title="Going")
    make.a_draft(title="Written")

    seen = page(visiting(make.a_user(role="viewer")), "/plans")

    assert "Going holding" in seen.text
    assert "Written draft" in seen.text


@pytest.mark.parametrize("state", ["rolling-back", "rolled-back"])
def test_nodes_that_went_back_are_not_said_to_be_changed_alone(state: str):
    """As the plan's own page counts them: all of three ran the new version, and two of them run it no more."""
    plan = make.a_plan(make.a_fleet(nodes=5), title="Gone back")
    back = Stage.objects.get(plan=plan, kind=StageKind.ROLLBACK)
    for target in Target.objects.forward().filter(stage__plan=plan, stage__index=1)[:3]:
        Target.objects.filter(pk=target.pk).update(state="changed")
        is_back = state == "rolled-back" or target.position < 2
        Target.objects.create(
            stage=back,
            position=target.position,
            node_uid=target.node_uid,
            node_name=target.node_name,
            state="changed" if is_back else "held",
            state_since=plan.created_at,
        )
    Plan.objects.filter(pk=plan.pk).update(state=state, sealed_at=plan.created_at)
    viewer = visiting(make.a_user(role="viewer"))
    number = 3 if state == "rolled-back" else 2

    assert f"3 of 5 {number} back" in page(viewer, "/plans").text
    if state == "rolling-back":
        strip = page(viewer, "/parts/plans/strip").text
        assert f"3 of 5 nodes changed · 2 back on {plan.from_version}" in strip
    assert f"{number} back on {plan.from_version}" in page(viewer, f"/plans/{plan.pk}").text


def test_what_lists_and_a_plans_page_call_back_are_the_same_nodes():
    """`back_on_old_version` and `shown_state`, whatever the rows say."""
    chance = random.Random(7)
    plan = make.a_plan(make.a_fleet(nodes=40))
    back = Stage.objects.get(plan=plan, kind=StageKind.ROLLBACK)
    for target in Target.objects.forward().filter(stage__plan=plan):
        Target.objects.filter(pk=target.pk).update(state=chance.choice(list(TargetState)))
        Hold.objects.filter(plan=plan, node_uid=target.node_uid).update(
            is_wanted=chance.random() < 0.5, placed_at=chance.choice([None, plan.created_at])
        )
        if chance.random() < 0.5:
            Target.objects.create(
                stage=back,
                position=target.position,
                node_uid=target.node_uid,
                node_name=target.node_name,
                state=chance.choice(["changed", "held"]),
                state_since=plan.created_at,
            )

    for state in PlanState:
        for put_back_at in (None, plan.created_at):
            Plan.objects.filter(pk=plan.pk).update(state=state, put_back_at=put_back_at)
            rows = Target.objects.filter(stage__plan=plan).with_holds().select_related("stage__plan")
            shown = {row.pk for row in rows if row.shown_state == Shown.BACK}

            assert {row.pk for row in Target.objects.filter(stage__plan=plan).back_on_old_version()} == shown


def test_plans_that_are_over_cost_the_same_however_many_there_are(django_assert_num_queries):
    viewer = visiting(make.a_user(role="viewer"))
    make.a_plan(title="First")
    Plan.objects.update(state="rolled-back", reason="Over.")
    page(viewer, "/plans")
    with CaptureQueriesContext(connection) as few:
        page(viewer, "/plans")
    first = Plan.objects.get()
    Plan.objects.bulk_create(
        Plan(**{**{f.attname: getattr(first, f.attname) for f in Plan._meta.concrete_fields}, "id": None})
        for _ in range(35)
    )

    with django_assert_num_queries(len(few)):
        seen = page(viewer, "/plans")

    assert seen.text.count("rolled back") == 30


def test_a_stranger_sees_no_plan():
    make.a_plan(title="Going")

    assert "Going" not in page(visiting(make.a_user()), "/plans").text


def test_who_may_approve_finds_what_waits_for_them():
    stage = make.a_stage_to_approve()
    amy = visiting(make.a_user("amy", role="approver"))

    seen = page(amy, "/plans")

    assert "Your approvals" in seen.text
    assert f"/stages/{stage.pk}/approval" in seen.links


def test_the_author_is_not_asked_to_approve_their_own():
    ada = make.a_user("ada", role="admin")
    make.a_stage_to_approve(make.a_plan(author=ada))

    assert "Your approvals" not in page(visiting(ada), "/plans").text


def test_the_home_page_shows_what_is_under_way():
    make.a_plan(title="Going")

    assert "Going" in page(visiting(make.a_user(role="viewer")), "/parts/plans/strip").text


def test_a_viewer_sees_why_they_may_not_draft():
    response = visiting(make.a_user(role="viewer")).get("/plans").content.decode()

    assert "You need the role operator to draft a plan" in response


def test_hostile_titles_are_shown_and_not_run():
    make.a_plan(title=HOSTILE)

    assert HOSTILE in page(visiting(make.a_user(role="viewer")), "/plans").text


def test_the_number_of_queries_does_not_grow_with_the_plans(queries_of):
    viewer = visiting(make.a_user(role="viewer"))
    make.a_plan()
    make.a_draft()
    with_few = queries_of(viewer, "/plans")

    for _ in range(6):
        make.a_plan()
        make.a_draft()

    assert queries_of(viewer, "/plans") == with_few


def test_the_home_page_says_that_a_plans_cluster_is_not_seen():
    plan = make.a_plan(title="Going")
    viewer = visiting(make.a_user(role="viewer"))
    assert "stale" not in page(viewer, "/parts/plans/strip").text

    Bookmark.objects.update(last_seen_at=make.NOON - timedelta(minutes=5))

    seen = page(viewer, "/parts/plans/strip").text
    assert f"{plan.cluster.name} is stale since 11:55:00: this is the state at 11:55:00" in seen


@pytest.mark.parametrize("address", ["/plans", "/parts/plans/strip"])
def test_a_plan_that_no_worker_looks_at_does_not_say_what_it_waited_for(address):
    plan, long_ago = make.a_plan(), make.NOON - timedelta(minutes=5)
    row = {"looked_at": long_ago, "next_look_at": long_ago, "lease_until": long_ago, "waiting_for": "gpu-0 goes."}
    Plan.objects.filter(pk=plan.pk).update(state="promoting", **row)

    seen = page(visiting(make.a_user(role="viewer")), address).text

    assert "No worker has evaluated it since 11:55 UTC" in seen
    assert "gpu-0 goes." not in seen


def test_no_more_nodes_fail_than_there_are():
    """A node that failed on the way there and in the rollback is one; who was taken out is none."""
    plan = make.a_plan()
    Plan.objects.filter(pk=plan.pk).update(state="rolling-back")
    for target in Target.objects.filter(stage__plan=plan).forward():
        Target.objects.create(
            stage=plan.stages.get(kind="rollback"), position=target.position, node_uid=target.node_uid,
            node_name=target.node_name, state="failed", state_since=make.NOON,
        )  # fmt: skip
    Target.objects.filter(stage__plan=plan).update(state="failed")
    Target.objects.filter(node_name="gpu-2").update(state="excluded")

    viewer = visiting(make.a_user(role="viewer"))

    assert "0 of 2 2" in page(viewer, "/plans").text
    assert "0 of 2 nodes changed · 2 failed" in page(viewer, "/parts/plans/strip").text


@pytest.mark.parametrize("address", ["/plans", "/parts/plans/strip"])
def test_a_halted_plan_says_why_and_not_what_its_last_look_met(address):
    plan = make.a_plan()
    plan.move("halted", now=make.NOON, actor="engine", reason="A pod does not run.")
    Plan.objects.filter(pk=plan.pk).update(waiting_for="Halted. A person decides: roll back, resume or abort.")

    text = page(visiting(make.a_user(role="viewer")), address).text

    assert "A pod does not run." in text
    assert "A person decides" not in text


def test_the_home_page_counts_one_node_as_one():
    first, *others = Target.objects.forward().filter(stage__plan=make.a_plan())
    Target.objects.filter(pk=first.pk).update(state="changed")
    Target.objects.filter(pk__in=[other.pk for other in others]).update(state="excluded")

    assert "1 of 1 node changed" in page(visiting(make.a_user(role="viewer")), "/parts/plans/strip").text


@pytest.mark.parametrize(("verb", "state"), [("pause", "promoting"), ("halt", "halted")])
def test_a_list_says_why_a_plan_stands_still_as_its_own_page_does(verb: str, state: str):
    """Also before a worker has heard of it."""
    plan = make.a_plan(title="Going")
    Plan.objects.filter(pk=plan.pk).update(state=state, reason="A gate failed.", waiting_for="Letting gpu-0 go.")
    plan.commands.create(verb=verb, actor="ben", at=plan.state_since, reason="Lunch.")
    viewer = visiting(make.a_user(role="viewer"))

    for path in ("/plans", "/parts/plans/strip", f"/plans/{plan.pk}"):
        assert f"ben {'paused' if verb == 'pause' else 'halted'} the plan: Lunch." in page(viewer, path).text
    assert "A gate failed." not in page(viewer, "/plans").text
    assert "Letting gpu-0 go." not in page(viewer, "/plans").text


@pytest.mark.parametrize("address", ["/plans", "/parts/plans/strip"])
def test_a_halt_that_is_in_force_is_shown_before_the_plan_says_so(address):
    plan = in_state(make.a_plan(), "promoting")
    PendingCommand.objects.create(plan=plan, verb="halt", actor="ada", at=make.NOON, reason="Smoke.")

    assert "ada halted the plan: Smoke." in page(visiting(make.a_user(role="viewer")), address).text
