"""The page of freezes, the form with its preview, and the stop on every page."""

from datetime import timedelta

import pytest

from operations.models import Freeze
from rollouts.commands import fleet_freezes
from rollouts.commands.fleet_freezes import Where
from rollouts.models import Plan
from rollouts.web import freezes_page
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, Page, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
STOP_SAYS = "The fleet is stopped by ada: Smoke."


@pytest.fixture
def ada():
    return visiting(make.a_user("ada", role="operator"))


@pytest.fixture
def bob():
    return visiting(make.a_user("bob", role="viewer"))


def send(client, path: str, **asked) -> tuple[int, str]:
    response = client.post(path, {"reason": "quarter end", **asked}, follow=True)
    return response.status_code, Page(response.content.decode()).text


def frozen(where: Where | None = None, **given) -> Freeze:
    return fleet_freezes.freeze(where or Where(), **{"actor": "ada", "reason": "quarter end", "now": NOON} | given)


def test_nothing_is_frozen_at_first(ada):
    text = page(ada, "/freezes").text

    assert "No freezes." in text
    assert "No freeze has ended yet." in text


def test_what_is_frozen_is_said_with_what_it_binds(ada):
    make.a_plan(make.a_fleet("north"))
    frozen(until=NOON + timedelta(hours=3))

    text = page(ada, "/freezes").text

    assert "The fleet is frozen by ada until 15:00 UTC: quarter end." in text
    assert "binds 1 plan in progress · rollbacks continue · ends by itself in 3 h" in text


@pytest.mark.parametrize(
    ("state", "binds_rollbacks", "pool", "says"),
    [
        ("rolling-back", False, None, "binds no plan in progress"),
        ("rolling-back", True, None, "binds 1 plan in progress"),
        ("promoting", False, "h200", "binds 1 plan in progress"),
        ("promoting", False, "empty", "binds no plan in progress"),
    ],
)
def test_a_plan_is_bound_as_the_form_showed_before(ada, state, binds_rollbacks, pool, says):
    plan = make.a_plan(make.a_fleet("north"))
    Plan.objects.filter(pk=plan.pk).update(state=state)
    make.a_pool(plan.cluster, "empty")
    frozen(Where(plan.cluster, plan.cluster.pools.get(name=pool) if pool else None), binds_rollbacks=binds_rollbacks)

    assert says in page(ada, "/freezes").text


def test_it_is_shown_before_it_is_in_force(ada):
    plan = make.a_plan(make.a_fleet("north"))
    on = f"cluster-{plan.cluster_id}"

    _, shown = send(ada, "/freezes/new", on=on)

    assert not Freeze.objects.exists()
    assert "Affected plans in cluster north" in shown
    assert "3 nodes stay held." in shown
    _, done = send(ada, "/freezes/new", on=on, seen=f"{on} False")
    assert "Cluster north is frozen by ada: quarter end." in done


def test_another_place_than_the_one_that_was_looked_at_is_looked_at_first(ada):
    plan = make.a_plan(make.a_fleet("north"))

    send(ada, "/freezes/new", on="fleet", seen=f"cluster-{plan.cluster_id} False")

    assert not Freeze.objects.exists()


def test_sent_twice_it_is_one(ada):
    for _ in range(2):
        send(ada, "/freezes/new", on="fleet", seen="fleet False", key="k1")

    assert Freeze.objects.count() == 1


@pytest.mark.parametrize("other", [{"reason": "another"}, {"until": "2026-12-30T08:00"}, {"binds_rollbacks": "on"}])
def test_sent_again_with_something_else_it_is_not_the_same(ada, other):
    send(ada, "/freezes/new", on="fleet", seen="fleet False", key="k1")

    sent = {"on": "fleet", "seen": f"fleet {'binds_rollbacks' in other}", "key": "k1", **other}
    status, text = send(ada, "/freezes/new", **sent)

    assert status == 409
    assert "already used for freeze at 2026-11-21 12:00:00 UTC. To repeat it, press the button" in text
    assert Freeze.objects.count() == 1


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"reason": " "}, "Give a reason"),
        ({"reason": "x" * 1001}, "at most 1000 characters"),
        ({"until": "soon"}, "Enter a date and time"),
        ({"until": "２０２６-11-30T08:00"}, "0 to 9"),
        ({"until": "2020-01-01T08:00"}, "This time is in the past"),
        ({"until": "2050-01-01T08:00"}, "At most 366 days"),
        ({"on": "cluster-0"}, "Choose what to freeze"),
        ({"on": "moon"}, "Choose what to freeze"),
        ({"on": "pool-x"}, "Choose what to freeze"),
    ],
)
def test_what_cannot_be_is_said_beside_its_field(ada, asked, says):
    status, text = send(ada, "/freezes/new", **{"on": "fleet", "seen": "fleet False"} | asked)

    assert status == 400
    assert says in text
    assert not Freeze.objects.exists()


def test_a_refusal_loses_nothing_that_was_written(ada):
    asked = {"on": "fleet", "reason": "Quarter\r\nend.", "until": "soon", "binds_rollbacks": "on"}
    html = ada.post("/freezes/new", asked).content.decode()

    assert ">\nQuarter\r\nend.</textarea>" in html
    assert 'value="soon"' in html
    assert "checked" in html.partition('name="binds_rollbacks"')[2].partition(">")[0]


def test_a_line_end_counts_as_one_character(ada):
    reason = "x\r\n" * 500

    send(ada, "/freezes/new", on="fleet", seen="fleet False", reason=reason)

    assert Freeze.objects.get().reason == "x\n" * 499 + "x"


def test_a_freeze_is_lifted_with_a_reason(ada):
    row = frozen()

    _, refused = send(ada, f"/freezes/{row.pk}/lifts", reason="")
    _, done = send(ada, f"/freezes/{row.pk}/lifts", reason="It is over.")
    _, late = send(ada, f"/freezes/{row.pk}/lifts", reason="x")

    assert "Give a reason" in refused
    assert "continue unless another freeze or window binds them." in done
    assert "It is over." in done
    assert "ada has already lifted the freeze" in late


def test_the_stop_is_on_every_page_with_who_and_why(ada, bob):
    plan = make.a_plan()
    send(ada, "/stop", reason="Smoke.")

    for path in ("/", "/plans", f"/plans/{plan.pk}", "/pools", "/findings", "/account", "/freezes"):
        assert STOP_SAYS in page(bob, path).text, path
    assert STOP_SAYS in bob.get("/parts/stop").content.decode()
    html = page(bob, "/plans")
    assert "dialog-lift-stop" not in html.ids
    assert "dialog-lift-stop" in page(ada, "/plans").ids


def test_the_stop_is_lifted_where_it_is_shown(ada):
    send(ada, "/stop", reason="Smoke.")

    _, done = send(ada, "/stop/lifts", reason="A toaster.")
    _, late = send(ada, "/stop/lifts", reason="x")

    assert "Stop lifted: plans continue unless a freeze or window binds them." in done
    assert STOP_SAYS not in page(ada, "/plans").text
    assert "The fleet is not stopped" in late


def test_a_stop_needs_a_reason_and_the_second_is_told_of_the_first(ada):
    _, refused = send(ada, "/stop", reason=" ")
    assert not Freeze.objects.exists()
    send(ada, "/stop", reason="Smoke.")
    _, second = send(ada, "/stop", reason="Smoke!")

    assert "Give a reason" in refused
    assert f"The fleet is already stopped. {STOP_SAYS}" in second


@pytest.mark.parametrize("act", ["/freezes/{}/lifts", "/stop/lifts", "/stop"])
def test_what_was_written_is_said_beside_a_refusal_once(ada, act):
    """Its form is gone by then, or is for another freeze."""
    row = frozen()
    if act == "/stop":
        fleet_freezes.stop(actor="amy", reason="x", now=NOON)
    else:
        fleet_freezes.lift(row, actor="amy", reason="x", now=NOON)

    _, refused = send(ada, act.format(row.pk), reason="The <quarter> is over.")

    assert "Your text was not saved: The <quarter> is over." in refused
    assert "not saved." not in page(ada, "/freezes").text


def test_a_list_of_what_is_over_says_that_it_is_not_all(ada, monkeypatch):
    for _ in range(3):
        fleet_freezes.lift(frozen(), actor="ada", reason="x", now=NOON)

    assert "Finished the last" not in page(ada, "/freezes").text
    monkeypatch.setattr(freezes_page, "PAST", 2)
    assert "Finished the last 2" in page(ada, "/freezes").text


def test_who_may_not(bob):
    row = frozen()

    assert "To halt or pause a plan, freeze or stop you need" in send(bob, "/stop")[1]
    assert "lift a freeze you need" in send(bob, f"/freezes/{row.pk}/lifts")[1]
    assert "lift a freeze you need" in send(bob, "/stop/lifts")[1]
    _, refused = send(bob, "/freezes/new", on="fleet", seen="fleet False")
    assert "you need the role" in refused
    assert Freeze.objects.count() == 1


def test_a_stranger_gets_nowhere():
    row = frozen()
    eve = visiting(make.a_user("eve"))

    for path in ("/stop", "/stop/lifts", f"/freezes/{row.pk}/lifts", "/freezes/new"):
        eve.post(path, {"reason": "x", "on": "fleet", "seen": "fleet False"})

    row.refresh_from_db()
    assert row.ended_at is None
    assert Freeze.objects.count() == 1


def test_one_of_another_cluster_is_no_page_for_them():
    row = frozen(Where(make.a_fleet("north")))
    cid = visiting(make.a_user("cid", role="operator", on=make.a_fleet("south")))

    assert cid.post(f"/freezes/{row.pk}/lifts", {"reason": "x"}).status_code == 404
    assert "north" not in page(cid, "/freezes").text


def test_a_plan_says_what_else_holds_it_back(ada):
    plan = make.a_plan()
    frozen()
    plan.commands.create(verb="pause", actor="ben", at=NOON, reason="Lunch.")

    text = page(ada, f"/plans/{plan.pk}").text

    assert "ben paused the plan: Lunch." in text
    assert "Besides: The fleet is frozen by ada: quarter end." in text


def test_what_people_wrote_is_only_text(ada):
    frozen(reason=HOSTILE)
    fleet_freezes.lift(frozen(reason=HOSTILE), actor="ada", reason=HOSTILE, now=NOON)
    fleet_freezes.stop(actor="ada", reason=HOSTILE, now=NOON)

    for path in ("/freezes", "/plans", "/parts/freezes", "/parts/stop"):
        assert HOSTILE not in ada.get(path).content.decode()
    page(ada, "/freezes")


def test_the_number_of_queries_does_not_grow(ada, queries_of):
    make.a_plan()
    frozen()
    few = queries_of(ada, "/freezes")

    for _ in range(3):
        frozen(Where(make.a_plan(make.a_fleet()).cluster))

    assert queries_of(ada, "/freezes") == few
