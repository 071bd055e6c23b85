"""The same from a shell: at three in the morning the page may be down."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from operations.models import Freeze
from tests.callers import bob, now  # noqa: F401 (fixtures)

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

    assert said.startswith("This stops 0 plans in progress")
    assert "The fleet is stopped by ada: Smoke." in said
    assert Freeze.objects.get().is_stop
    with pytest.raises(CommandError, match="Give a reason"):
        manage("stop", "--reason", " ", "--yes")


def test_whoever_does_not_mean_it_stops_nothing(monkeypatch):
    answering(monkeypatch, "no")

    with pytest.raises(CommandError, match="Nothing is stopped"):
        manage("stop", "--reason", "Smoke.")

    assert not Freeze.objects.exists()


def test_who_stops_what_is_stopped_loses():
    manage("stop", "--reason", "Smoke.", "--yes")

    with pytest.raises(CommandError, match=r"already stopped\. The fleet is stopped by shell on the server"):
        manage("stop", "--reason", "Smoke!", "--yes")
