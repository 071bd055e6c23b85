"""How far a plan is with labels, from its rows: the same on its page, by REST and in the shell."""

from datetime import timedelta

import pytest

from people.models import User
from rollouts.commands import plan_control
from rollouts.commands.plan_start import start
from rollouts.commands.remaining_time import label_progress
from rollouts.models import Hold, Plan, Target, Wave
from rollouts.queries.plan_view import plan_on_page
from tests.callers import calling
from tests.make import NOON, a_user
from tests.pages import page, visiting
from tests.rollouts.rows import a_draft, a_driver_cluster, in_state

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
SECOND = timedelta(seconds=1)
RELEASED_STATES = "8 of 12 nodes let go; about 4 s remaining at the pace of the last minute"


@pytest.fixture
def plan() -> Plan:
    """Of fourteen nodes, all held since an hour."""
    owner = a_user("ada", role="operator")
    made = a_draft(a_driver_cluster(nodes=14), owner)
    start(made, actor=owner, reason="x", expected_revision=1, now=NOON)
    Hold.objects.filter(plan=made).update(placed_at=NOON - timedelta(hours=1))
    return made


def release(plan: Plan, *names: str, freed: int) -> None:
    """As an act leaves it that has come so far, one in each second."""
    rows = Hold.objects.filter(plan=plan, node_name__in=names)
    rows.update(is_wanted=False, wanted_since=NOON - 60 * SECOND)
    for number, row in enumerate(rows[:freed], 1):
        Hold.objects.filter(pk=row.pk).update(placed_at=None, freed_at=NOON - number * SECOND)


def said(plan: Plan) -> list[str]:
    return [progress.sentence for progress in label_progress(plan_on_page(plan, now=NOON), now=NOON)]


def nodes(number: int) -> list[str]:
    return [f"node-{index}" for index in range(number)]


@pytest.mark.parametrize("state", ["aborting", "rolling-back"])
def test_page_and_rest_say_how_far_it_is_with_letting_go(plan, state):
    in_state(plan, state)
    Plan.objects.update(put_back_at=NOON)
    release(plan, *nodes(12), freed=8)
    bob = a_user("bob", role="viewer")

    assert RELEASED_STATES in page(visiting(bob), f"/plans/{plan.pk}").text
    shown = calling(bob).get(f"/api/v1/plans/{plan.pk}").json()
    assert shown["releasing"] == {"done": 8, "total": 12, "left_s": 4.0}
    assert shown["holding"] is None


def by_a_wave(hold: Hold) -> None:
    """As a wave has written it of its node."""
    target = Target.objects.get(node_uid=hold.node_uid)
    target.wave = Wave.objects.create(stage=target.stage, number=1, decided_at=hold.wanted_since, reason="1 node.")
    target.save()


@pytest.mark.parametrize("became", ["releasing", "released", "changing", "changed", "failed", "excluded"])
def test_nodes_that_waves_let_go_are_not_among_them(plan, became):
    """Neither those of long ago nor the one whose label a wave takes off now, or took off with nobody to write it."""
    in_state(plan, "rolling-back")
    Plan.objects.update(put_back_at=NOON)
    release(plan, *nodes(14), freed=9)
    Hold.objects.filter(node_name="node-0").update(
        wanted_since=NOON - timedelta(hours=2), freed_at=NOON - timedelta(hours=2)
    )
    *_, last = Hold.objects.filter(plan=plan, placed_at__isnull=False)
    by_a_wave(last)
    Target.objects.filter(node_uid=last.node_uid).update(state=became)

    assert said(plan) == [RELEASED_STATES]


def test_a_wave_whose_label_went_unwritten_speaks_for_no_other(plan):
    in_state(plan, "promoting")
    release(plan, "node-0", freed=0)
    by_a_wave(Hold.objects.get(node_name="node-0"))
    Target.objects.filter(node_name="node-0").update(state="changed")

    assert said(plan) == []


def test_one_that_was_held_again_since_its_wave_is_among_them(plan):
    in_state(plan, "rolling-back")
    Plan.objects.update(put_back_at=NOON)
    release(plan, *nodes(12), freed=8)
    by_a_wave(Hold.objects.get(node_name="node-11"))
    Wave.objects.update(decided_at=NOON - timedelta(hours=2))

    assert said(plan) == [RELEASED_STATES]


def test_nothing_is_said_where_every_label_is_gone(plan):
    in_state(plan, "aborting")
    release(plan, *nodes(12), freed=12)

    assert said(plan) == []


@pytest.mark.parametrize(
    ("is_written", "sentences"), [(True, ["0 of 14 nodes held"]), (False, [])], ids=["written", "not written"]
)
def test_a_plan_that_is_given_up_holds_first_only_where_it_has_a_version_to_put_back(plan, is_written, sentences):
    Hold.objects.filter(plan=plan).update(placed_at=None)
    in_state(plan, "aborting", is_written=is_written)

    assert said(plan) == sentences


@pytest.mark.parametrize(("state", "sentences"), [("rolling-back", ["0 of 14 nodes held"]), ("holding", [])])
def test_a_pause_keeps_no_rollback_from_holding(plan, state, sentences):
    Hold.objects.filter(plan=plan).update(placed_at=None)
    in_state(plan, state)

    plan_control.pause(plan, actor=User.objects.get(username="ada"), reason="Lunch.", now=NOON)

    assert said(plan) == sentences
