"""A hold of the driver beside those of plans: each owner's label is its own."""

from typing import Any

import pytest
from django.urls import reverse

from fleet.models import Node
from gpu.labels import HELD_BY, UPGRADE_SKIP, UPGRADE_STATE
from gpu.upgrade_controller import UPGRADE_DONE, UPGRADE_FAILED, UPGRADE_REQUIRED
from operations.impact import impact_of
from operations.kinds import KINDS
from operations.lifecycle import OperationState
from operations.models import Disruption, Freeze
from operations.operation_round import OperationRound
from operations.refusals import OperationRefused
from operations.steps.driver_hold import REMOVED_MARKS
from tests import make
from tests.operations.test_rounds import begin, rounds
from tests.rollouts.engine.ground import CANARY, NODES, REST, Ground

pytestmark = pytest.mark.django_db


def result(ground: Ground, kind: str, name: str = CANARY) -> tuple[str, str]:
    (row,) = rounds(ground, begin(ground, kind, name), 2).nodes.all()
    return row.state, row.reason


def annotations(ground: Ground, name: str = CANARY) -> dict[str, Any]:
    return ground.node(name)["metadata"].get("annotations") or {}


def test_a_hold_is_placed_and_ended_and_the_node_is_as_before(ground: Ground):
    before = (ground.labels(CANARY), annotations(ground))
    first = begin(ground, "hold-driver", CANARY)
    rounds(ground, first, 2)
    assert (ground.labels(CANARY)[UPGRADE_SKIP], annotations(ground)[HELD_BY]) == ("true", first.mark)
    assert not Disruption.objects.in_force().exists(), "a hold takes no node out of service"

    assert result(ground, "hold-driver") == ("done", f"Held already by {first.mark}. Quarterdeck leaves that hold.")
    assert result(ground, "free-driver") == ("done", "Freed. The operator has no change to make.")
    assert (ground.labels(CANARY), annotations(ground)) == before
    assert result(ground, "free-driver") == ("done", "No hold was there.")


def test_a_queued_node_is_evaluated_again_and_followed_until_its_driver_has_changed(ground: Ground):
    rounds(ground, begin(ground, "hold-driver", CANARY), 2)
    ground.set_state(CANARY, UPGRADE_REQUIRED)
    operation = begin(ground, "free-driver", CANARY)
    rounds(ground, operation, 2)
    assert UPGRADE_STATE not in ground.labels(CANARY)
    assert Disruption.objects.in_force().filter(taken_by=operation.mark).count() == 1

    ground.set_state(CANARY, "drain-required")
    (row,) = rounds(ground, operation, 1).nodes.all()
    assert (row.state, row.reason) == ("running", "Freed. The operator: drain-required.")
    ground.set_state(CANARY, UPGRADE_DONE)
    (row,) = rounds(ground, operation, 1).nodes.all()
    assert (row.state, row.reason) == ("done", "Freed. The node has the driver that the operator wants.")
    assert not Disruption.objects.in_force().exists()


def test_a_failed_driver_change_pauses_the_release_of_the_next_nodes(ground: Ground, monkeypatch):
    monkeypatch.setattr("operations.operation_round.AT_ONCE_MOST", 1)
    rounds(ground, begin(ground, "hold-driver", *NODES), 2)
    for name in NODES:
        ground.set_state(name, UPGRADE_REQUIRED)
    operation = rounds(ground, begin(ground, "free-driver", *NODES), 2)
    freed = [name for name in NODES if UPGRADE_SKIP not in ground.labels(name)]
    assert len(freed) == 1

    ground.set_state(freed[0], UPGRADE_FAILED)
    operation = rounds(ground, operation, 1)
    assert operation.state == OperationState.PAUSED
    assert [name for name in NODES if UPGRADE_SKIP not in ground.labels(name)] == freed


def test_marks_without_a_label_are_removed_and_said_so(ground: Ground):
    rounds(ground, begin(ground, "hold-driver", CANARY), 2)
    ground.label(CANARY, **{UPGRADE_SKIP: "false"})

    assert result(ground, "free-driver") == ("done", REMOVED_MARKS)
    assert (ground.labels(CANARY)[UPGRADE_SKIP], HELD_BY in annotations(ground)) == ("false", False)


def test_a_node_in_a_driver_change_is_not_held(ground: Ground):
    ground.set_state(CANARY, "drain-required")

    state, reason = result(ground, "hold-driver")
    assert (state, "drain-required" in reason) == ("failed", True)
    assert UPGRADE_SKIP not in ground.labels(CANARY)


def test_the_hold_of_somebody_else_stays(ground: Ground):
    ground.label(CANARY, **{UPGRADE_SKIP: "true"})

    assert result(ground, "hold-driver") == ("done", "Held already by somebody else. Quarterdeck leaves that hold.")
    assert result(ground, "free-driver") == ("failed", "Held by somebody else. Quarterdeck does not remove that hold.")
    assert ground.labels(CANARY)[UPGRADE_SKIP] == "true"


@pytest.mark.parametrize("kind", ["hold-driver", "free-driver"])
def test_a_plan_in_progress_forbids_it_by_name(ground: Ground, kind: str):
    plan = ground.start()
    ground.round()

    with pytest.raises(OperationRefused, match=f"Plan #{plan.pk} .* changes this node's driver"):
        begin(ground, kind, CANARY)


@pytest.mark.parametrize("kind", ["hold-driver", "free-driver"])
def test_a_plan_that_started_since_ends_it_by_name(ground: Ground, kind: str):
    """Each would wait for the other to leave the node."""
    operation = begin(ground, kind, CANARY)
    plan = ground.start()
    ground.round()
    (row,) = rounds(ground, operation).nodes.all()

    assert (row.state, row.reason.startswith(f"Plan #{plan.pk}")) == ("failed", True)
    assert not Disruption.objects.in_force().filter(taken_by=operation.mark).exists()
    assert annotations(ground).get(HELD_BY) == plan.mark


def test_a_freed_node_is_followed_also_when_a_plan_forbids_another_write(ground: Ground):
    rounds(ground, begin(ground, "hold-driver", CANARY), 2)
    ground.set_state(CANARY, UPGRADE_REQUIRED)
    operation = rounds(ground, begin(ground, "free-driver", CANARY), 2)
    ground.look()
    plan = ground.start()
    ground.round()
    (row,) = rounds(ground, operation).nodes.all()

    assert (row.state, row.reason) == ("failed", f"Freed, and held again by {plan.mark}.")


def test_a_plan_leaves_a_node_that_an_operation_holds(ground: Ground):
    operation = begin(ground, "hold-driver", REST[0])
    rounds(ground, operation, 2)
    ground.look()
    ground.start()
    ground.rounds(3)

    assert ground.held() == set(NODES)
    assert annotations(ground, REST[0])[HELD_BY] == operation.mark
    assert ground.plan.holds.get(node_name=REST[0]).is_foreign


@pytest.mark.parametrize("restraint", ["freeze", "stop"])
def test_no_hold_ends_under_a_freeze_or_the_stop_that_came_before_the_write(
    ground: Ground, restraint: str, monkeypatch
):
    rounds(ground, begin(ground, "hold-driver", CANARY), 2)
    operation, guard = begin(ground, "free-driver", CANARY), OperationRound._guard

    def restrained(*given: Any) -> None:
        where = {"is_stop": True, "binds_rollbacks": True} if restraint == "stop" else {"cluster": ground.cluster}
        if not Freeze.objects.exists():
            Freeze.objects.create(by="ada", reason="Demo.", at=ground.clock(), **where)
        guard(*given)

    monkeypatch.setattr(OperationRound, "_guard", restrained)
    rounds(ground, operation, 1)
    assert ground.labels(CANARY)[UPGRADE_SKIP] == "true"


def test_the_preview_names_queued_nodes_and_foreign_holds(ground: Ground):
    ground.label(REST[0], **{UPGRADE_SKIP: "true"})
    ground.set_state(CANARY, UPGRADE_REQUIRED)
    ground.look()
    nodes = list(Node.objects.filter(name__in=(CANARY, REST[0])).order_by("name"))

    steps = KINDS["free-driver"].steps
    warnings = impact_of(ground.cluster, nodes, steps, actor="ada", now=ground.clock()).warnings
    said = " ".join(warnings)
    assert f"{CANARY} is queued" in said
    assert f"{REST[0]} is held by others" in said


@pytest.mark.parametrize(
    ("state", "is_held", "offered"),
    [
        ("upgrade-done", False, "hold-driver"),
        ("", False, ""),
        ("upgrade-required", True, "free-driver"),
        ("", True, "free-driver"),
    ],
)
def test_a_node_page_offers_the_kind_that_fits_and_names_who_holds(
    ground: Ground, client, state: str, is_held: bool, offered: str
):
    operation = begin(ground, "hold-driver", CANARY, reason="A training run of ten days.")
    held_by = operation.mark if is_held else ""
    Node.objects.filter(name=CANARY).update(upgrade_state=state, is_held=is_held, held_by=held_by)
    client.force_login(make.a_user(role="operator"))

    node = Node.objects.get(name=CANARY)
    page = client.get(reverse("node-operations", args=[node.pk])).content.decode()
    assert {kind for kind in ("hold-driver", "free-driver") if f"kind={kind}&" in page} == {offered} - {""}
    assert (f"operation {operation.pk}</a>: A training run of ten days." in page) is is_held
