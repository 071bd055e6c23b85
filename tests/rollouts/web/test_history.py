import pytest

from rollouts.models import PlanEvent, Target, Wave
from tests import make
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def plan():
    plan = make.a_plan(author=make.a_user("ada", role="operator"))
    stage = plan.stages.get(index=1)
    wave = Wave.objects.create(stage=stage, number=1, decided_at=make.NOON, reason="2 nodes.")
    Target.objects.filter(stage=stage).update(wave=wave)
    for target in stage.targets.all():
        PlanEvent.objects.create(
            plan=plan, stage=stage, target=target, what="target", was="held", to="releasing", at=make.NOON,
            actor="engine", reason="Its wave.",
        )  # fmt: skip
    return plan


def history(plan, who: str = "") -> str:
    return page(visiting(make.a_user(role="viewer")), f"/parts/plans/{plan.pk}/history?who={who}").text


def test_what_happened_to_a_wave_is_one_line(plan):
    assert "H200, wave 1 2 lines, from 12:00:00 ; last: gpu-2 releasing" in history(plan)


def test_only_people_if_asked(plan):
    seen = history(plan, "people")

    assert "wave 1" not in seen
    assert "ada" in seen


def test_only_one_person_if_asked(plan):
    assert "Nothing by bob." in history(plan, "bob")
    assert "wave 1" in history(plan, "engine")


def test_it_says_where_it_ends_before_the_beginning(plan, monkeypatch):
    assert "Older lines" not in history(plan)

    monkeypatch.setattr("rollouts.web.history.MOST", 2)

    assert "Older lines are in REST" in history(plan)
