"""An answer of "done" holds only while its effect holds (Z37)."""

import pytest

from rollouts.models import Plan
from tests.callers import calling
from tests.make import a_plan, a_user
from tests.rollouts.api.test_commands import tell
from tests.rollouts.rows import in_state


@pytest.fixture
def plan(ada) -> Plan:
    return in_state(a_plan(), "promoting")


def test_a_halt_that_somebody_undid_is_not_answered_done(ada, plan):
    tell(ada, plan, "halts", key="k1")
    tell(calling(a_user("ben", role="operator")), plan, "resumptions")

    reply = tell(ada, plan, "halts", key="k1")

    assert reply.status_code == 409
    assert "The plan is promoting: ben resumed it at 2026-" in reply.json()["detail"]
    assert tell(ada, plan, "halts", key="k2").status_code == 204
    assert Plan.objects.get(pk=plan.pk).state == "halted"


def test_the_key_of_one_person_swallows_nobody_elses_pause(ada, plan):
    ben = calling(a_user("ben", role="operator"))
    tell(ada, plan, "pauses", key="k1")
    tell(ada, plan, "resumptions")

    reply = tell(ben, plan, "pauses", key="k1")

    assert reply.status_code == 204
    assert plan.commands.in_force().get().actor == "ben"


def test_a_key_names_one_body_only(ada, plan):
    tell(ada, plan, "halts", key="k1")

    reply = tell(ada, plan, "halts", key="k1", reason="Another reason.")

    assert reply.status_code == 409
    assert "was already used for" in reply.json()["detail"]


def test_a_repeat_is_done_while_its_effect_holds_whatever_state_was_expected(ada, plan):
    replies = [tell(ada, plan, "halts", key="k1", expected_state="promoting") for _ in range(2)]

    assert [reply.status_code for reply in replies] == [204, 204]
