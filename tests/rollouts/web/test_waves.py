"""What the waves of a stage say of their size on the plan's page."""

from datetime import timedelta

import pytest

from rollouts.models import Stage, Wave
from rollouts.web.board import said_of
from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
ROOM = "the stage may have 1 unavailable: none of it used"


def waves(stage: Stage, *said: str) -> None:
    """One node each."""
    stage.targets.all().delete()
    for number, because in enumerate(said, start=1):
        wave = Wave.objects.create(stage=stage, number=number, decided_at=NOON, because=because)
        stage.targets.create(
            position=number, node_uid=str(number), node_name=f"gpu-{number}", state="changed", state_since=NOON,
            wave=wave, released_at=NOON - timedelta(minutes=5),
        )  # fmt: skip


def test_what_allows_so_many_is_said_once_a_stage_and_again_where_it_changes():
    stage = make.a_stage_to_approve()
    other = "the operator upgrades 2 at once and 1 is on the way"
    waves(stage, f"1 node: {ROOM}.", f"2 nodes: {ROOM}.", f"1 node: {ROOM}.", f"1 node: {other}.", f"1 node: {ROOM}.")

    text = page(visiting(make.a_user(role="viewer")), f"/plans/{stage.plan_id}").text

    assert text.count(ROOM) == 2
    assert text.count(other) == 1
    assert "2 nodes." in text


def test_each_stage_says_it_for_itself():
    plan = make.a_stage_to_approve().plan
    for stage in plan.stages.exclude(kind="rollback"):
        waves(stage, f"1 node: {ROOM}.")
    number = plan.stages.exclude(kind="rollback").count()

    text = page(visiting(make.a_user(role="viewer")), f"/plans/{plan.pk}").text

    assert number > 1
    assert text.count(ROOM) == number


def test_a_sentence_without_a_reason_is_said_as_it_is():
    one, two = (Wave(number=number, because="2 nodes.") for number in (1, 2))

    assert said_of(two, one) == "2 nodes."
