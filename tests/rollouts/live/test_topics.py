import pytest

from rollouts.live.topics import PlanTopics
from tests import make

pytestmark = pytest.mark.django_db


def test_a_plan_has_telemetry_of_by_who_sees_its_cluster():
    plan = make.a_draft()
    viewer = make.a_user(role="viewer", on=plan.cluster)

    opened = PlanTopics().open(viewer, f"plan-{plan.pk}")

    assert opened.groups == (f"plan-{plan.pk}",)
    assert opened.keys == {f"plan-{plan.pk}"}


@pytest.mark.parametrize("name", ["plan-", "plan-x", "plan-999999", "cluster-1", "plans-1", ""])
def test_what_is_no_plan_is_not_opened(name):
    assert PlanTopics().open(make.a_user(role="viewer"), name) is None


def test_a_stranger_opens_nothing():
    plan = make.a_draft()

    assert PlanTopics().open(make.a_user(), f"plan-{plan.pk}") is None
    assert PlanTopics().open(make.a_user(), "plans").keys == frozenset()


def test_who_sees_one_pool_sees_no_plan():
    plan = make.a_draft()
    viewer = make.a_user(role="viewer", on=plan.cluster.pools.get())

    assert PlanTopics().open(viewer, f"plan-{plan.pk}") is None


def test_the_list_hears_of_plans_that_are_written_later():
    cluster = make.a_fleet()
    viewer = make.a_user(role="viewer", on=cluster)

    assert f"plans-of-{cluster.pk}" in PlanTopics().open(viewer, "plans").keys


def test_the_number_of_a_plan_is_its_newest_event(django_capture_on_commit_callbacks):
    plan = make.a_plan()

    assert PlanTopics().sequences() == {f"plan-{plan.pk}": plan.events.first().pk}


def test_a_page_of_a_draft_learns_of_an_event_before_it_connected():
    draft = make.a_draft()

    assert PlanTopics().sequences() == {f"plan-{draft.pk}": draft.events.first().pk}
