from fleet.models import Node
from rollouts.steering.preview import preview
from tests.make import NOON
from tests.rollouts.rows import a_draft


def warned(plan) -> dict[str, str]:
    return {check.code: check.sentence for check in preview(plan, now=NOON).warnings}


def test_a_budget_that_broken_nodes_use_up_is_named_before_the_start(cluster, owner):
    """Z6: the budget counts what is broken already."""
    plan = a_draft(cluster, owner)
    Node.objects.filter(name="node-2").update(is_unschedulable=True)

    assert "node-2 already is" in warned(plan)["budget"]


def test_a_budget_with_room_is_no_warning(cluster, owner):
    assert "budget" not in warned(a_draft(cluster, owner))
