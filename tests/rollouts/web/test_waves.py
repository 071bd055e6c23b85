"""What the waves of a stage say of their size on the plan's page."""

import re
from datetime import timedelta

import pytest

from rollouts.models import Cordon, Stage, Wave
from rollouts.queries.plan_view import plan_on_page
from rollouts.web.board import column_of, wave_size_text
from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
ROOM = "the stage may have 1 unavailable: none of it used"


def waves(stage: Stage, *said: str) -> None:
    """One node each."""
    stage.targets.all().delete()
    for number, reason in enumerate(said, start=1):
        wave = Wave.objects.create(stage=stage, number=number, decided_at=NOON, reason=reason)
        stage.targets.create(
            position=number, node_uid=str(number), node_name=f"let-go-{number}", state="changed", state_since=NOON,
            wave=wave, released_at=NOON - timedelta(minutes=5),
        )  # fmt: skip


def test_what_allows_so_many_is_said_once_a_stage_and_again_where_it_changes():
    stage = make.a_stage_to_approve()
    other = "the operator upgrades at most 2 at once, and 1 is on the way"
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
    one, two = (Wave(number=number, reason="2 nodes.") for number in (1, 2))

    assert wave_size_text(two, one) == "2 nodes."


def test_nodes_of_a_wave_that_is_done_are_fetched_when_it_is_unfolded():
    stage = make.a_stage_to_approve()
    waves(stage, "1 node: room.", "1 node: room.")
    stage.targets.filter(node_name="let-go-2").update(state="changing")
    done, other = stage.waves.order_by("number")
    client = visiting(make.a_user(role="viewer"))

    text = page(client, f"/plans/{stage.plan_id}").text.replace("let-go-1, let-go-2", "the nodes of its rollback")
    parts = [page(client, f"/parts/plans/{stage.plan_id}/waves/{wave.pk}").text for wave in (done, other)]

    assert ("let-go-1" in text, "let-go-2" in text) == (False, True)
    assert "1 node done" in text
    assert [("let-go-1" in part, "let-go-2" in part) for part in parts] == [(True, False), (False, True)]


def test_nodes_of_a_wave_that_went_back_are_not_said_to_be_done():
    """They run the old version again: no green word of it, and the parts come to the whole."""
    stage = make.a_stage_to_approve()
    waves(stage, "1 node: room.", "2 nodes: room.")
    wave = stage.waves.get(number=2)
    stage.targets.create(
        position=3, node_uid="3", node_name="let-go-3", state="changed", state_since=NOON, wave=wave, released_at=NOON
    )
    rollback = stage.plan.stages.get(kind="rollback")
    for uid in ("1", "2"):
        rollback.targets.create(
            position=int(uid), node_uid=uid, node_name=f"let-go-{uid}", state="changed", state_since=NOON
        )

    html = visiting(make.a_user(role="viewer")).get(f"/plans/{stage.plan_id}").content.decode()
    went_back, mixed = re.findall(r'<summary class="wave-title">.*?</summary>', html)[:2]

    assert "1 node back" in went_back
    assert "is-part" in went_back
    assert "is-ok" not in went_back
    assert "done" not in went_back
    assert "1 node done" in mixed
    assert "1 node back" in mixed


def test_a_wave_of_another_plan_and_of_a_plan_that_is_not_seen_is_not_found():
    one, other = make.a_stage_to_approve(), make.a_stage_to_approve(make.a_plan(make.a_fleet("other")))
    for stage in (one, other):
        waves(stage, "1 node: room.")
    wave = one.waves.get()

    seeing, blind = visiting(make.a_user(role="viewer")), visiting(make.a_user("blind"))

    assert seeing.get(f"/parts/plans/{one.plan_id}/waves/{wave.pk}").status_code == 200
    assert seeing.get(f"/parts/plans/{other.plan_id}/waves/{wave.pk}").status_code == 404
    assert blind.get(f"/parts/plans/{one.plan_id}/waves/{wave.pk}").status_code == 404


def test_a_wave_that_changed_is_another_one_to_the_page():
    """What somebody has unfolded is fetched again where it has changed, and only there."""
    stage = make.a_stage_to_approve()
    waves(stage, "1 node: room.")

    def key() -> str:
        (group,) = column_of(plan_on_page(stage.plan, now=NOON).stages[0], {}).waves
        return group.key

    before, again = key(), key()
    stage.targets.update(reason="It runs 580.126.20.")

    assert before == again != key()


def test_a_wave_whose_nodes_are_cordoned_until_they_are_tested_is_not_done():
    stage = make.a_stage_to_approve()
    stage.gate_options = {"driver_version": {}, "test_job": {}}
    stage.save()
    waves(stage, f"1 node: {ROOM}.")
    Cordon.objects.create(plan=stage.plan, node_uid="1", node_name="let-go-1", wanted_since=NOON, placed_at=NOON)

    text = page(visiting(make.a_user(role="viewer")), f"/plans/{stage.plan_id}").text

    assert "cordoned until tested" in text
    assert "1 node done" not in text
    Cordon.objects.update(ended_at=NOON)
    text = page(visiting(make.a_user(role="viewer")), f"/plans/{stage.plan_id}").text
    assert "1 node done" in text
