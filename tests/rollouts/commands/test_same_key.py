"""One Idempotency-Key is one command, also when all who send it come at once, and while its effect holds (Z37)."""

from collections.abc import Callable
from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from people.models import User
from rollouts.commands import live_checks, plan_control
from rollouts.commands.live_checks import ask_start
from rollouts.commands.plan_start import start
from rollouts.commands.refusals import Blocked, Refusal
from rollouts.lifecycle import PlanState
from rollouts.models import Command, LiveCheck, Plan, Verb
from tests.make import NOON, a_draft, a_fleet, a_plan, a_user
from tests.rollouts.rows import in_state

pytestmark = pytest.mark.sqlite

KEY = "from-ci-17"
TELL = {
    Verb.HALT: (plan_control.halt, "promoting"),
    Verb.PAUSE: (plan_control.pause, "promoting"),
    Verb.RESUME: (plan_control.resume, "halted"),
    Verb.ROLLBACK: (plan_control.roll_back, "halted"),
    Verb.ABORT: (plan_control.abort, "promoting"),
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

    answers = at_once(4, lambda: tell(type(plan).objects.get(pk=plan.pk), actor=ada, reason="x", key=KEY, now=NOON))

    assert answers == [None] * 4
    assert plan.commands.filter(key=KEY).count() == 1


@pytest.mark.django_db(transaction=True)
def test_four_starts_at_once_are_one():
    ada = a_user("ada", role="operator")
    plan = a_draft(a_fleet(), author=ada)
    given = {"actor": ada, "reason": "x", "expected_revision": plan.revision, "key": KEY, "now": NOON}

    answers = at_once(4, lambda: start(type(plan).objects.get(pk=plan.pk), **given))

    assert answers == [None] * 4
    assert Command.objects.filter(plan=plan, verb=Verb.START).count() == 1


@pytest.mark.django_db(transaction=True)
def test_four_who_ask_for_one_start_at_once_have_asked_once():
    ada = a_user("ada", role="operator")
    plan = a_draft(a_fleet(), author=ada)
    given = {"actor": ada, "reason": "x", "expected_revision": plan.revision, "key": KEY, "now": NOON}

    answers = at_once(4, lambda: ask_start(Plan.objects.get(pk=plan.pk), **given))

    assert answers == [None] * 4
    assert plan.events.filter(to="ask-start").count() == 1


@pytest.mark.django_db
def test_a_start_that_is_asked_for_is_so_whatever_bars_it_since(monkeypatch):
    ada = a_user("ada", role="operator")
    plan = a_draft(a_fleet(), author=ada)
    given = {"actor": ada, "reason": "x", "expected_revision": plan.revision, "now": NOON}
    ask_start(plan, key=KEY, **given)

    def barred(*_, **__):
        raise Blocked([])

    monkeypatch.setattr(live_checks, "look_before", barred)

    ask_start(plan, key=KEY, **given)
    with pytest.raises(Blocked):
        ask_start(plan, key="another", **given)


@pytest.mark.django_db
def test_nobody_elses_key_asks_for_their_start():
    ada, ben = a_user("ada", role="operator"), a_user("ben", role="operator")
    plan = a_draft(a_fleet(), author=ada)
    given = {"reason": "x", "expected_revision": plan.revision, "key": KEY, "now": NOON}
    ask_start(plan, actor=ada, **given)

    with pytest.raises(Refusal, match="ada requested the start at"):
        ask_start(plan, actor=ben, **given)
    with pytest.raises(Refusal, match="was already used for"):
        ask_start(plan, actor=ada, **given | {"reason": "y"})
    assert LiveCheck.objects.get().asked_by == "ada"


@pytest.mark.django_db
def test_a_start_is_repeated_until_it_was_undone():
    ada = a_user("ada", role="operator")
    plan = a_draft(a_fleet(), author=ada)
    given = {"actor": ada, "reason": "x", "expected_revision": plan.revision, "key": KEY, "now": NOON}
    start(plan, **given)
    plan_control.halt(plan, actor=ada, reason="x", now=NOON)

    ask_start(plan, **given)

    plan_control.abort(plan, actor=ada, reason="x", now=NOON)
    with pytest.raises(Refusal, match="The plan is aborting: ada aborted it at"):
        ask_start(plan, **given)
    assert plan.commands.filter(verb=Verb.START).count() == 1


def looking_too_early(monkeypatch) -> None:
    """The first look at the key comes before the first command is committed."""
    truly, looks = plan_control._earlier, []
    monkeypatch.setattr(plan_control, "_earlier", lambda *asked: truly(*asked) if looks else looks.append(1))


@pytest.mark.django_db
@pytest.mark.parametrize("verb", [Verb.PAUSE, Verb.HALT, Verb.ROLLBACK])
def test_who_looked_too_early_is_not_refused(monkeypatch, verb: Verb):
    tell, state = TELL[verb]
    plan, ada = a_plan(), a_user("ada", role="operator")
    in_state(plan, state)
    tell(plan, actor=ada, reason="x", key=KEY, now=NOON)
    looking_too_early(monkeypatch)

    tell(plan, actor=ada, reason="x", key=KEY, now=NOON)

    assert plan.commands.filter(key=KEY).count() == 1


@pytest.mark.django_db
def test_who_starts_too_early_is_not_refused(monkeypatch):
    ada = a_user("ada", role="operator")
    plan = a_draft(a_fleet(), author=ada)
    given = {"actor": ada, "reason": "x", "expected_revision": plan.revision, "key": KEY, "now": NOON}
    start(plan, **given)
    looking_too_early(monkeypatch)

    start(plan, **given)

    assert plan.commands.filter(verb=Verb.START).count() == 1


@pytest.mark.django_db
def test_another_command_under_the_same_key_is_still_refused():
    plan, ada = a_plan(), a_user("ada", role="operator")
    in_state(plan, "promoting")
    plan_control.halt(plan, actor=ada, reason="x", key=KEY, now=NOON)

    with pytest.raises(Refusal, match="was already used for"):
        plan_control.abort(plan, actor=ada, reason="x", key=KEY, now=NOON)


@pytest.mark.django_db
def test_another_persons_equal_key_swallows_no_halt():
    plan, ada, ben = in_state(a_plan(), "promoting"), a_user("ada", role="operator"), a_user("ben", role="operator")
    plan_control.halt(plan, actor=ada, reason="x", key=KEY, now=NOON)
    plan_control.resume(plan, actor=ada, reason="x", now=NOON)

    plan_control.halt(plan, actor=ben, reason="x", key=KEY, now=NOON)

    assert Plan.objects.get(pk=plan.pk).state == "halted"


@pytest.mark.django_db
def test_a_halt_by_the_engine_is_not_the_halt_that_was_undone():
    plan, ada = in_state(a_plan(), "promoting"), a_user("ada", role="operator")
    plan_control.halt(plan, actor=ada, reason="x", key=KEY, now=NOON)
    plan_control.resume(plan, actor=ada, reason="x", now=NOON)
    plan.move(PlanState.HALTED, now=NOON + timedelta(seconds=1), actor="engine", reason="A gate failed.")

    with pytest.raises(Refusal, match=r"in effect\. The plan is halted: A gate failed\."):
        plan_control.halt(plan, actor=ada, reason="x", key=KEY, now=NOON)


@pytest.mark.django_db
def test_who_has_paused_it_since_is_named():
    plan, ada, ben = in_state(a_plan(), "promoting"), a_user("ada", role="operator"), a_user("ben", role="operator")
    plan_control.pause(plan, actor=ada, reason="x", key=KEY, now=NOON)
    plan_control.resume(plan, actor=ada, reason="x", now=NOON)
    plan_control.pause(plan, actor=ben, reason="Fans are loud", key=KEY, now=NOON)

    with pytest.raises(Refusal, match=r"The plan is promoting and paused: ben paused the plan: Fans are loud\."):
        plan_control.pause(plan, actor=ada, reason="x", key=KEY, now=NOON)


@pytest.mark.django_db
def test_a_key_that_was_kept_without_its_body_names_every_body():
    plan, ada = in_state(a_plan(), "promoting"), a_user("ada", role="operator")
    plan_control.pause(plan, actor=ada, reason="x", key=KEY, now=NOON)
    plan.commands.update(body_digest="")

    plan_control.pause(plan, actor=ada, reason="y", key=KEY, now=NOON)

    plan_control.resume(plan, actor=ada, reason="x", now=NOON)
    with pytest.raises(Refusal, match="is no longer in effect"):
        plan_control.pause(plan, actor=ada, reason="y", key=KEY, now=NOON)


PEOPLE, KEYS = ("ada", "ben"), ("k1", "k2")
SAID = tuple(str(verb) for verb in TELL)
IS_SO: dict[str, Callable[[Plan], bool]] = {
    "halt": lambda plan: plan.state == "halted",
    "pause": lambda plan: plan.commands.in_force().exists(),
    "resume": lambda plan: plan.state != "halted" and not plan.commands.in_force().exists(),
    "rollback": lambda plan: plan.state in {"rolling-back", "rolled-back"},
    "abort": lambda plan: plan.state in {"aborting", "aborted"},
}
ENGINE = {"holding": "promoting", "promoting": "halted", "rolling-back": "rolled-back", "aborting": "aborted"}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(PEOPLE), st.sampled_from(SAID), st.sampled_from(KEYS)),
        st.just(("engine", "move", "")),
    ),
    max_size=10,
)  # fmt: skip


@pytest.mark.django_db
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_is_said_by_whomever_under_which_key_done_is_so(told: Plan, steps: list[tuple[str, str, str]]):
    users = {name: User.objects.get(username=name) for name in PEOPLE}
    with transaction.atomic():
        for who, verb, key in steps:
            if who == "engine":
                the_engine_moves(told)
                continue
            before = set(told.commands.values_list("pk", flat=True))
            try:
                with transaction.atomic():
                    TELL[Verb(verb)][0](told, actor=users[who], reason="x", key=key, now=NOON)
            except Refusal:
                continue
            finally:
                told.refresh_from_db()
            assert IS_SO[verb](told), (who, verb, key)
            new = told.commands.exclude(pk__in=before)
            mine = told.commands.get(actor=who, key=key)
            assert (mine.verb, [one.pk for one in new]) in ((verb, [mine.pk]), (verb, []))
        if told.state in {"holding", "promoting"}:  # a new key always halts
            plan_control.halt(told, actor=users["ada"], reason="x", key="new", now=NOON)
            assert told.state == "halted"
        transaction.set_rollback(True)
    told.refresh_from_db()


@pytest.fixture
def told() -> Plan:
    for name in PEOPLE:
        a_user(name, role="operator")
    return in_state(a_plan(), "promoting")


def the_engine_moves(plan: Plan) -> None:
    if to := ENGINE.get(plan.state):
        plan.move(PlanState(to), now=NOON, actor="engine", reason="So it goes.")
