"""The same from a shell: at three in the morning the page may be down."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from rollouts.models import Freeze, Plan
from rollouts.queries.plan_view import plan_on_page
from tests.callers import bob, now  # noqa: F401 (fixtures)
from tests.make import NOON, a_fleet, a_plan

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def manage(*args: str) -> str:
    out = StringIO()
    call_command(*args, stdout=out)
    return out.getvalue()


def answering(monkeypatch, words: str) -> None:
    monkeypatch.setattr("builtins.input", lambda _: words)


def test_the_stop_asks_once_and_needs_a_reason(monkeypatch):
    answering(monkeypatch, "stop")

    said = manage("stop", "--reason", "Smoke.", "--by", "ada")

    assert said.startswith("This stops 0 plans under way")
    assert "The fleet is stopped by ada: Smoke." in said
    assert Freeze.objects.get().is_stop
    with pytest.raises(CommandError, match="Say why"):
        manage("stop", "--reason", " ", "--yes")


def test_whoever_does_not_mean_it_stops_nothing(monkeypatch):
    answering(monkeypatch, "no")

    with pytest.raises(CommandError, match="Nothing is stopped"):
        manage("stop", "--reason", "Smoke.")

    assert not Freeze.objects.exists()


def test_who_stops_what_is_stopped_loses():
    manage("stop", "--reason", "Smoke.", "--yes")

    with pytest.raises(CommandError, match=r"stopped already\. The fleet is stopped by whoever has a shell here"):
        manage("stop", "--reason", "Smoke!", "--yes")


def test_the_stop_is_lifted_by_its_name():
    manage("stop", "--reason", "Smoke.", "--yes")

    assert manage("lift", "stop", "--reason", "A toaster.") == "Lifted. What nothing else binds goes on.\n"
    with pytest.raises(CommandError, match="not stopped"):
        manage("lift", "stop", "--reason", "x")


@pytest.mark.parametrize("where", ["fleet", "north", "north/h200"])
def test_freezing_listing_and_lifting(where: str):
    a_fleet("north")

    said = manage("freeze", where, "--reason", "Quarter end.", "--also-rollbacks")
    key = Freeze.objects.get().pk

    assert said.splitlines()[-1] == f"bin/manage lift {key} --reason WHY ends it."
    assert manage("freezes") == f"{key}: {said.splitlines()[0]} Rollbacks as well.\n"
    manage("lift", str(key), "--reason", "It is over.")
    assert manage("freezes") == "Nothing is frozen.\n"


@pytest.mark.parametrize("where", ["south", "north/h300", "north/"])
def test_a_place_that_is_none(where: str):
    a_fleet("north")

    if where == "north/":
        assert "Cluster north is frozen" in manage("freeze", where, "--reason", "x")
    else:
        with pytest.raises(CommandError):
            manage("freeze", where, "--reason", "x")


@pytest.mark.parametrize("until", ["tomorrow", "2026-13-01T08:00Z", "2020-01-01T08:00Z"])
def test_an_end_that_is_none(until: str):
    with pytest.raises(CommandError):
        manage("freeze", "fleet", "--reason", "x", "--until", until)

    assert not Freeze.objects.exists()


def test_why_says_what_page_and_rest_say(bob):  # noqa: F811
    plan = a_plan()
    manage("freeze", "fleet", "--reason", "Quarter end.", "--by", "ada")

    said = manage("why", str(plan.pk))

    assert said == "The fleet is frozen by ada: Quarter end.\n"
    assert said.strip() == plan_on_page(plan, now=NOON).why == bob.get(f"/api/v1/plans/{plan.pk}").json()["why"]
    assert manage("why", f"plan-{plan.pk}") == said


def test_why_without_a_plan_says_it_of_all_under_way():
    plan = a_plan(a_fleet("north"))
    Plan.objects.filter(pk=plan.pk).update(waiting_for="Canary: 1 node to go.")

    assert manage("why") == f"{plan} on north is holding:\nCanary: 1 node to go.\n0 of 3 nodes held.\n"
    with pytest.raises(CommandError, match="There is no plan x"):
        manage("why", "x")
