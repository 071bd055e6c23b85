"""What a crowd leaves in the web process goes again."""

import gc
import weakref
from collections.abc import Iterator
from itertools import count

import pytest
from django.core.signals import request_finished

from config import process_cleanup
from config.process_cleanup import ANSWERS, collect_after_answers, release_memory

pytestmark = pytest.mark.django_db  # whoever hears that a request is over looks at its database connection


class Held:
    """An answer as REST framework leaves it: it knows its view, and the view knows it."""

    def __init__(self) -> None:
        self.view = {"response": self}


@pytest.fixture
def collecting() -> Iterator[None]:
    """Only where it is asked for: what Python does by itself is another matter."""
    gc.disable()
    collect_after_answers()
    yield
    request_finished.disconnect(dispatch_uid="config.process_cleanup")
    gc.enable()


@pytest.mark.nightly
def test_answers_that_outlived_the_young_do_not_stay(collecting: None):
    """Fifty that are made at once grow old before the first of them is sent."""
    held = Held()
    known = weakref.ref(held)
    gc.collect(1)
    gc.collect(1)
    del held
    gc.collect(1)
    assert known() is not None

    for _ in range(ANSWERS):
        request_finished.send(sender=None)

    assert known() is None


@pytest.mark.nightly
def test_it_is_not_looked_through_after_each(collecting: None):
    """That would take longer than the answers."""
    before = gc.get_stats()[2]["collections"]

    for _ in range(10 * ANSWERS):
        request_finished.send(sender=None)

    assert gc.get_stats()[2]["collections"] == before + 10


def test_an_answer_that_went_before_the_next_is_not_kept(collecting: None):
    held = Held()
    known = weakref.ref(held)
    del held

    request_finished.send(sender=None)

    assert known() is None


def test_what_the_first_answers_load_is_frozen_and_not_looked_through_again(
    collecting: None, monkeypatch: pytest.MonkeyPatch
):
    sent: list[int] = []
    frozen_after: list[int] = []
    monkeypatch.setattr(process_cleanup, "_answers", count(1))
    monkeypatch.setattr(gc, "collect", lambda *_: 0)
    monkeypatch.setattr(gc, "freeze", lambda: frozen_after.append(len(sent)))

    for number in range(40 * ANSWERS):
        sent.append(number)
        request_finished.send(sender=None)

    assert frozen_after == [times * ANSWERS for times in range(1, 17)]


def test_tidying_up_takes_what_is_in_a_cycle(collecting: None):
    held = Held()
    known = weakref.ref(held)
    del held

    release_memory()

    assert known() is None
