"""The one table of a plan's verbs: every place that must have a verb has it, and none says another thing of it."""

import pytest
from django.db import transaction
from django.urls import resolve

from rollouts.api.commands import VERB_VIEWS
from rollouts.commands import COMMANDS
from rollouts.commands.refusals import Refusal
from rollouts.lifecycle import PLAN_FINAL, PLAN_MOVES, PlanState
from rollouts.models import Plan, Verb
from rollouts.queries.plan_view import buttons
from rollouts.verbs import VERBS
from tests.callers import calling
from tests.make import NOON, a_draft, a_plan, a_user
from tests.pages import Page, visiting
from tests.rollouts.rows import a_started_plan, in_state

OF_A_DRAFT = {name for name, verb in VERBS.items() if PlanState.DRAFT in verb.states}
UNDER_WAY = sorted(VERBS.keys() - OF_A_DRAFT)


@pytest.fixture
def plan(cluster, owner) -> Plan:
    return a_started_plan(cluster, owner)


def test_somebody_carries_every_verb_out():
    assert COMMANDS.keys() == VERBS.keys()


def test_every_verb_that_is_written_down_as_a_command_has_its_word():
    of_a_target = {Verb.EXCLUDE, Verb.RETRY}
    assert {*Verb.values} - of_a_target == VERBS.keys() - {"discard"}  # a draft that is thrown away keeps no command


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_a_resource_and_a_form(verb: str):
    view = resolve(f"/api/v1/plans/7/{VERBS[verb].resource}").func.cls

    assert view in VERB_VIEWS
    assert view.verb == verb
    assert resolve(f"/plans/7/commands/{verb}").kwargs == {"plan_id": 7, "verb": verb}


@pytest.mark.parametrize("verb", UNDER_WAY)
def test_no_verb_means_something_where_the_plan_is_over(verb: str):
    assert VERBS[verb].states.isdisjoint(PLAN_FINAL)


@pytest.mark.parametrize(
    ("verb", "to"),
    [
        ("start", PlanState.HOLDING),
        ("halt", PlanState.HALTED),
        ("rollback", PlanState.ROLLING_BACK),
        ("abort", PlanState.ABORTING),
        ("discard", PlanState.DISCARDED),
    ],
)
def test_a_verb_means_something_only_where_the_lifecycle_has_its_move(verb: str, to: PlanState):
    assert {state for state in VERBS[verb].states if to in PLAN_MOVES[state]} == VERBS[verb].states


@pytest.mark.parametrize("is_paused", [False, True])
@pytest.mark.parametrize("state", sorted(PlanState))
def test_a_button_says_what_the_command_is_refused_with(plan: Plan, owner, state, is_paused: bool):
    in_state(plan, state)
    if is_paused:
        plan.commands.create(verb=Verb.PAUSE, actor="ada", at=NOON, reason="Fans.")
    shown = {each.verb: each for each in buttons(plan, a_user(role="admin"))}

    for verb in UNDER_WAY:
        before = transaction.savepoint()
        try:
            COMMANDS[verb](Plan.objects.get(pk=plan.pk), actor=owner, reason="Because.", now=NOON)
            said = ""
        except Refusal as refusal:
            said = str(refusal)
        transaction.savepoint_rollback(before)

        assert (shown[verb].why_not, shown[verb].is_allowed) == (said, not said), verb


@pytest.mark.parametrize("verb", VERBS)
def test_who_may_not_is_told_the_same_by_the_button_and_by_rest(db, verb: str):
    plan = a_draft() if verb in OF_A_DRAFT else a_plan()
    viewer = a_user(role="viewer")
    asked = {"reason": "Because.", "expected_revision": 1}

    reply = calling(viewer).post(f"/api/v1/plans/{plan.pk}/{VERBS[verb].resource}", asked, format="json")

    said = next(each.why_not for each in buttons(plan, viewer) if each.verb == verb)
    assert (reply.status_code, reply.json()["detail"]) == (403, said)


@pytest.mark.parametrize("verb", VERBS)
def test_a_page_and_rest_show_every_verb(db, verb: str):
    plan = a_draft() if verb in OF_A_DRAFT else a_plan()
    admin = a_user(role="admin")

    listed = calling(admin).get(f"/api/v1/plans/{plan.pk}").json()["buttons"]
    page = visiting(admin).get(f"/plans/{plan.pk}").content.decode()

    assert VERBS[verb].resource in {each["resource"] for each in listed}
    assert f'id="dialog-{verb}"' in page
    assert VERBS[verb].consequence in Page(page).text
