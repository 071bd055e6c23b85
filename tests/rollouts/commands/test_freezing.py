"""Freezing, stopping and lifting: what is kept of it, whom it binds, and who loses."""

from datetime import timedelta

import pytest
from django.db import IntegrityError

from operations.models import Freeze
from people.models import AuditEntry
from people.models.audit_entry import broken_links
from rollouts.commands import fleet_freezes, plan_control
from rollouts.commands.fleet_freezes import Where
from rollouts.commands.preview import preview
from rollouts.commands.refusals import BadFreeze, Refusal
from rollouts.models import Plan
from rollouts.queries.plan_view import plan_on_page
from rollouts.queries.restraints import restraints_of
from tests.make import NOON, a_draft, a_fleet, a_plan, a_user
from tests.rollouts.rows import in_state

pytestmark = pytest.mark.django_db
LATER = NOON + timedelta(hours=68)  # NOON is a Thursday


def a_freeze(where: Where | None = None, **given) -> Freeze:
    row = {"actor": "ada", "reason": "quarter end", "now": NOON}
    return fleet_freezes.freeze(where or Where(), **row | given)


def test_it_is_kept_with_who_why_and_until_when():
    cluster = a_fleet("north")

    row = a_freeze(Where(cluster), until=LATER, binds_rollbacks=True)

    (entry,) = AuditEntry.objects.filter(subject=row.mark)
    assert (entry.verb, entry.actor, entry.reason) == ("freeze", "ada", "quarter end")
    assert entry.evidence["scope"] == "cluster north"
    assert entry.evidence["binds_rollbacks"] is True


def test_a_plan_says_whose_freeze_it_waits_for_at_once():
    plan = a_plan(a_fleet("north"))

    a_freeze(until=LATER)

    says = f"The fleet is frozen by ada until {LATER:%A} 08:00 UTC: quarter end."
    plan.refresh_from_db()
    assert plan_on_page(plan, now=NOON).why == says
    assert plan.waiting_for == says
    assert plan.events.first().to == "freeze"


def test_a_plan_of_another_cluster_is_not_told():
    plan = a_plan(a_fleet("north"))

    a_freeze(Where(a_fleet("south")))

    assert plan_on_page(plan, now=NOON).restraint is None
    assert not plan.events.filter(to="freeze").exists()


def test_it_ends_by_itself():
    plan = a_plan()
    a_freeze(until=LATER)

    assert restraints_of(plan, now=LATER - timedelta(seconds=1)).first is not None
    assert restraints_of(plan, now=LATER).first is None


def test_lifting_is_kept_and_told():
    plan = a_plan()
    row = a_freeze()

    fleet_freezes.lift(row, actor="ben", reason="It is over.", now=LATER)

    assert (row.ended_by, row.ended_reason, row.ended_at) == (
        "ben",
        "It is over.",
        LATER,
    )
    assert plan.events.first().to == "lift"
    assert [entry.verb for entry in AuditEntry.objects.filter(subject=row.mark)] == ["freeze", "lift"]
    assert not list(broken_links(AuditEntry.objects.all()))


def test_who_lifts_what_was_lifted_meanwhile_loses():
    row = a_freeze()
    late = Freeze.objects.get(pk=row.pk)
    fleet_freezes.lift(row, actor="ben", reason="It is over.", now=NOON)

    with pytest.raises(Refusal, match="ben has already lifted the freeze"):
        fleet_freezes.lift(late, actor="ada", reason="x", now=NOON)

    assert AuditEntry.objects.filter(subject=row.mark, verb="lift").count() == 1


def test_what_ran_out_cannot_be_lifted():
    row = a_freeze(until=LATER)

    with pytest.raises(Refusal, match="already ended"):
        fleet_freezes.lift(row, actor="ada", reason="x", now=LATER)


def test_there_is_one_stop_and_who_comes_second_is_told_by_whom():
    fleet_freezes.stop(actor="ada", reason="Smoke.", now=NOON)

    with pytest.raises(Refusal, match=r"already stopped\. The fleet is stopped by ada: Smoke\."):
        fleet_freezes.stop(actor="ben", reason="Smoke!", now=NOON)

    assert Freeze.objects.count() == 1


def test_the_same_key_is_the_same_freeze():
    first = a_freeze(key="k1")

    assert a_freeze(key="k1") == first
    assert a_freeze(key="k1", actor="ben") != first
    with pytest.raises(Refusal, match="was already used for freeze at"):
        fleet_freezes.stop(actor="ada", reason="x", key="k1", now=NOON)


def test_a_key_whose_freeze_is_over_is_no_freeze():
    """Answered with it, who sends it again would read that nothing more is let go."""
    fleet_freezes.lift(a_freeze(key="k1"), actor="ben", reason="x", now=NOON)

    with pytest.raises(Refusal, match=r"no longer in effect\. ben has already lifted the freeze"):
        a_freeze(key="k1")


def test_two_who_send_one_key_at_once_make_one_freeze(monkeypatch):
    """The second looked before the first was committed: the constraint is what tells it."""
    first = a_freeze(key="k1")
    looks: list[int] = []
    truly = fleet_freezes._freeze_of_key
    monkeypatch.setattr(
        fleet_freezes, "_freeze_of_key", lambda row, now: truly(row, now=now) if looks else looks.append(1)
    )

    assert a_freeze(key="k1") == first
    assert Freeze.objects.count() == 1


@pytest.mark.parametrize("until", [NOON, NOON - timedelta(days=1), NOON + timedelta(days=367)])
def test_an_end_that_makes_no_sense_is_refused(until):
    with pytest.raises(BadFreeze) as refusal:
        a_freeze(until=until)

    assert refusal.value.problems[0]["field"] == "until"
    assert not Freeze.objects.exists()


def test_a_stop_that_spares_anything_cannot_be_written():
    with pytest.raises(IntegrityError):
        Freeze.objects.create(by="x", at=NOON, reason="x", is_stop=True, binds_rollbacks=False)


ORDER = ["stop", "pause", "until a person lifts it", "until Sunday", "until Saturday"]


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (
            "aborting",
            "The plan is being aborted: unchanged nodes are released, unless the operator would then change them.",
        ),
        ("rolling-back", "No node waits for its release now. Nodes that wait later stay held."),
    ],
)
def test_what_a_freeze_of_rollbacks_does_to_a_plan_without_a_rollback_stage_is_no_number_of_none(state: str, says: str):
    """Its nodes are held, and targets of no stage that goes back: not yet, or never."""
    plan = in_state(a_plan(a_fleet("north")), state)
    ada = a_user(role="admin")

    (bound,) = fleet_freezes.bound_by(Where(), binds_rollbacks=True, user=ada)
    (spared,) = fleet_freezes.bound_by(Where(), binds_rollbacks=False, user=ada)

    assert (bound.plan, bound.to_go, bound.sentence) == (plan, 0, says)
    assert spared.sentence == "The plan is rolling back and continues: this freeze does not bind rollbacks."


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_what_a_person_must_act_on_comes_first(first: int):
    """What never ends by itself is said before what does, and of those the last."""
    plan, ada = a_plan(), a_user("ada", role="operator")
    in_state(plan, "promoting")
    for what in reversed(ORDER[first:]):
        if what == "stop":
            fleet_freezes.stop(actor="ada", reason="stop", now=NOON)
        elif what == "pause":
            plan_control.pause(plan, actor=ada, reason="pause", now=NOON)
        else:
            until = {"until Sunday": NOON + timedelta(days=3), "until Saturday": NOON + timedelta(days=2)}.get(what)
            a_freeze(reason=what, until=until)

    on_page = plan_on_page(Plan.objects.get(pk=plan.pk), now=NOON)

    assert on_page.why.endswith((f": {ORDER[first]}.", f": {ORDER[first]}"))
    assert on_page.why not in on_page.besides


def test_the_waking_of_its_plans_is_in_their_rows():
    plan, other = a_plan(a_fleet("north")), a_plan(a_fleet("south"))
    Plan.objects.update(next_look_at=LATER)

    a_freeze(Where(plan.cluster))

    assert Plan.objects.get(pk=plan.pk).next_look_at == NOON
    assert Plan.objects.get(pk=other.pk).next_look_at == LATER


def test_a_draft_warns_of_what_its_nodes_would_wait_for():
    plan = a_draft(a_fleet("north"))
    a_freeze()

    told = [check for check in preview(plan, now=NOON).warnings if check.code == "restrained"]

    assert [check.summary for check in told] == ["The fleet is frozen by ada: quarter end."]
    assert told[0].steps == ("The plan may be started. These nodes wait.",)
