"""One Idempotency-Key is one command, also when all who send it come at once."""

from collections.abc import Callable
from threading import Barrier, Thread

import pytest
from django.db import connection

from rollouts.models import Command, Verb
from rollouts.steering import commands
from rollouts.steering.refusals import Refusal
from rollouts.steering.starting import start
from tests.make import NOON, a_draft, a_fleet, a_plan, a_user
from tests.rollouts.rows import in_state

KEY = "from-ci-17"
TELL = {
    Verb.HALT: (commands.halt, "promoting"),
    Verb.PAUSE: (commands.pause, "promoting"),
    Verb.RESUME: (commands.resume, "halted"),
    Verb.ROLLBACK: (commands.roll_back, "halted"),
    Verb.ABORT: (commands.abort, "promoting"),
}


def at_once(number: int, act: Callable[[], None]) -> list[Exception | None]:
    """What each of them got; None: it was done."""
    barrier, answers = Barrier(number), []

    def one() -> None:
        barrier.wait()
        try:
            act()
        except Exception as error:  # noqa: BLE001 - what it was is what the test asks
            answers.append(error)
        else:
            answers.append(None)
        finally:
            connection.close()

    threads = [Thread(target=one) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", TELL)
def test_four_at_once_get_the_first_ones_answer(verb: Verb):
    tell, state = TELL[verb]
    plan, ada = a_plan(), a_user("ada", role="operator")
    in_state(plan, state)

    answers = at_once(4, lambda: tell(type(plan).objects.get(pk=plan.pk), actor=ada, because="x", key=KEY, now=NOON))

    assert answers == [None] * 4
    assert plan.commands.filter(key=KEY).count() == 1


@pytest.mark.django_db(transaction=True)
def test_four_starts_at_once_are_one():
    ada = a_user("ada", role="operator")
    plan = a_draft(a_fleet(), author=ada)
    given = {"actor": ada, "because": "x", "expected_revision": plan.revision, "key": KEY, "now": NOON}

    answers = at_once(4, lambda: start(type(plan).objects.get(pk=plan.pk), **given))

    assert answers == [None] * 4
    assert Command.objects.filter(plan=plan, verb=Verb.START).count() == 1


def looking_too_early(monkeypatch) -> None:
    """The first look at the key comes before the first command is committed."""
    truly, looks = commands._given, []
    monkeypatch.setattr(commands, "_given", lambda *asked: truly(*asked) if looks else looks.append(1))


@pytest.mark.django_db
@pytest.mark.parametrize("verb", [Verb.PAUSE, Verb.HALT, Verb.ROLLBACK])
def test_who_looked_too_early_is_not_refused(monkeypatch, verb: Verb):
    tell, state = TELL[verb]
    plan, ada = a_plan(), a_user("ada", role="operator")
    in_state(plan, state)
    tell(plan, actor=ada, because="x", key=KEY, now=NOON)
    looking_too_early(monkeypatch)

    tell(plan, actor=ada, because="x", key=KEY, now=NOON)

    assert plan.commands.filter(key=KEY).count() == 1


@pytest.mark.django_db
def test_who_starts_too_early_is_not_refused(monkeypatch):
    ada = a_user("ada", role="operator")
    plan = a_draft(a_fleet(), author=ada)
    given = {"actor": ada, "because": "x", "expected_revision": plan.revision, "key": KEY, "now": NOON}
    start(plan, **given)
    looking_too_early(monkeypatch)

    start(plan, **given)

    assert plan.commands.filter(verb=Verb.START).count() == 1


@pytest.mark.django_db
def test_another_command_under_the_same_key_is_still_refused():
    plan, ada = a_plan(), a_user("ada", role="operator")
    in_state(plan, "promoting")
    commands.halt(plan, actor=ada, because="x", key=KEY, now=NOON)

    with pytest.raises(Refusal, match="named another command"):
        commands.abort(plan, actor=ada, because="x", key=KEY, now=NOON)
