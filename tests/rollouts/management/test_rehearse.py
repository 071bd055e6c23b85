from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from rollouts.models import Plan, Stage
from tests.callers import now  # noqa: F401 (a fixture)
from tests.rollouts.rows import a_draft, a_driver_cluster

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def rehearsed(plan: Plan, *words: str) -> str:
    out = StringIO()
    call_command("rehearse", str(plan.pk), *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def plan(owner) -> Plan:
    return a_draft(a_driver_cluster(nodes=6), owner)


def test_a_good_driver_passes_every_stage_and_touches_nothing(plan: Plan):
    said = rehearsed(plan)

    assert "Result:     every stage passes" in said
    assert "Released:   6 nodes of 6" in said
    plan.refresh_from_db()
    assert plan.state == "draft"
    assert not plan.holds.exists()


def test_a_fault_names_the_stage_the_gate_and_the_harm(plan: Plan):
    said = rehearsed(plan, "--fault", "bad-driver")

    assert "Fault:      The driver never becomes ready: 6 nodes of 6" in said
    assert "Result:     stops in Canary\n" in said
    assert "Gate:       driver_version\n" in said
    assert "did not load driver" in said
    assert "Harmed:     1 node; 0 released without a sign, 5 not released" in said


def test_a_gate_that_a_virtual_fleet_cannot_feed_is_named_and_never_passes(plan: Plan):
    for stage in plan.stages.forward():
        Stage.objects.filter(pk=stage.pk).update(gate_options=stage.gate_options | {"drift": {}})

    said = rehearsed(plan)

    assert "Result:     every stage passes its rehearsed gates\n" in said
    assert "Not rehearsed: Slow drift: " in said


def test_a_plan_without_nodes_says_what_to_do(plan: Plan):
    plan.cluster.nodes.update(is_unschedulable=True)

    with pytest.raises(CommandError, match="No stage of the plan has a node now"):
        rehearsed(plan)


def test_a_plan_that_is_not_there():
    with pytest.raises(CommandError, match="Plan 7 does not exist"):
        call_command("rehearse", "7")


BROWN_OUT = """
[[faults]]
key = "brown-out"
title = "Hot GPUs lose power"
findings = { gpu-hot = "critical" }
never_loads = true
"""


def test_a_fault_from_a_file_combines_effects(plan: Plan, tmp_path):
    path = tmp_path / "faults.toml"
    path.write_text(BROWN_OUT)

    said = rehearsed(plan, "--faults", str(path), "--fault", "brown-out")

    assert "Fault:      Hot GPUs lose power: 6 nodes of 6" in said
    with pytest.raises(CommandError, match=r"No fault is called bad-kernel\. Faults: brown-out"):
        rehearsed(plan, "--faults", str(path), "--fault", "bad-kernel")


def test_a_file_that_cannot_be_read_is_named(plan: Plan, tmp_path):
    with pytest.raises(CommandError, match=r"The faults cannot be read: .*none\.toml"):
        rehearsed(plan, "--faults", str(tmp_path / "none.toml"))
