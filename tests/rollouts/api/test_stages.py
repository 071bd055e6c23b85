from datetime import timedelta

import pytest

from rollouts.models import Exclusion, GateAnswer, Hold
from tests.make import NOON, a_draft, a_fleet, a_plan, a_stage_to_approve
from tests.rollouts.rows import an_item


def an_answer(stage, answer: str, *, is_current: bool = True, gate: str = "soak"):
    return GateAnswer.objects.create(
        stage=stage, gate=gate, answer=answer, title="60 s left", evidence=[an_item("Left", 60, "s")], since=NOON,
        at=NOON, is_current=is_current,
    )  # fmt: skip


def test_a_stage_shows_its_targets_and_what_its_gates_say(bob):
    stage = a_plan().stages.get(index=1)
    an_answer(stage, "fail", is_current=False)
    an_answer(stage, "wait")

    shown = bob.get(f"/api/v1/stages/{stage.pk}").json()

    assert [target["node"] for target in shown["targets"]] == ["gpu-1", "gpu-2"]
    assert shown["targets"][0]["wave"] is None
    assert shown["targets"][0]["baseline_driver_version"] is None
    assert [(row["gate_title"], row["answer"], row["evidence"]) for row in shown["answers"]] == [
        ("Soak", "wait", [an_item("Left", 60, "s")])
    ]
    assert [row["answer"] for row in shown["history"]] == ["fail"]


def test_the_history_begins_with_what_was_said_last_however_long_it_had_stood(bob):
    """A gate that waits from the first node to the last has one row: it is not lost behind those that came after."""
    stage = a_plan().stages.get(index=1)
    stood = an_answer(stage, "wait", is_current=False)
    an_answer(stage, "fail", is_current=False, gate="driver_version")
    GateAnswer.objects.filter(pk=stood.pk).update(at=NOON + timedelta(hours=1))

    history = bob.get(f"/api/v1/stages/{stage.pk}").json()["history"]

    assert [row["gate"] for row in history] == ["soak", "driver_version"]


def test_a_target_whose_hold_is_off_without_a_release_was_not_begun(bob):
    stage = a_plan().stages.get(index=1)
    Hold.objects.update(placed_at=NOON)
    Hold.objects.filter(node_name="gpu-1").update(is_wanted=False, placed_at=None)

    targets = bob.get(f"/api/v1/stages/{stage.pk}").json()["targets"]
    plan = bob.get(f"/api/v1/plans/{stage.plan_id}").json()

    assert {target["node"]: target["state"] for target in targets} == {"gpu-1": "not-begun", "gpu-2": "held"}
    assert plan["stages"][1]["targets_by_state"] == {"not-begun": 1, "held": 1}


def test_a_target_whose_label_was_not_read_back_is_not_held(bob):
    stage = a_plan().stages.get(index=1)
    Hold.objects.filter(node_name="gpu-1").update(placed_at=None)
    Hold.objects.filter(node_name="gpu-2").update(placed_at=NOON)

    plan = bob.get(f"/api/v1/plans/{stage.plan_id}").json()
    targets = bob.get(f"/api/v1/stages/{stage.pk}").json()["targets"]

    assert {target["node"]: target["state"] for target in targets} == {"gpu-1": "not-held", "gpu-2": "held"}
    assert plan["stages"][1]["targets_by_state"] == {"not-held": 1, "held": 1}


def test_a_target_says_what_keeps_controllers_off_it_and_what_was_there_before(bob):
    stage = a_plan().stages.get(index=1)
    target = stage.targets.get(node_name="gpu-1")
    row = {"plan": stage.plan, "node_uid": target.node_uid, "node_name": "gpu-1", "wanted_since": NOON}
    Exclusion.objects.create(controller="nvsentinel", placed_at=NOON, **row)
    Exclusion.objects.create(controller="karpenter", was="false", trouble="nodes is forbidden.", **row)
    Exclusion.objects.create(controller="autoscaler", placed_at=NOON, ended_at=NOON, **row)

    shown, other = bob.get(f"/api/v1/stages/{stage.pk}").json()["targets"]

    assert [(one["controller"], one["was"], one["is_placed"], one["says"]) for one in shown["exclusions"]] == [
        ("karpenter", "false", False,
         ("karpenter.sh/do-not-disrupt=true, which was “false” before, not shown by the cluster yet. nodes is "
         "forbidden.")),
        ("nvsentinel", None, True, "k8saas.nvidia.com/ManagedByNVSentinel=false, which was not there before."),
    ]  # fmt: skip
    assert other["exclusions"] == []


def test_stages_are_found_by_plan_and_state(bob):
    plan, _ = a_plan(), a_draft(a_fleet())

    rows = bob.get(f"/api/v1/stages?plan={plan.pk}&state=waiting").json()["results"]

    assert [row["name"] for row in rows] == ["Canary", "H200", "Rollback"]


@pytest.mark.parametrize("nodes", [3, 9])
def test_a_stage_costs_the_same_queries_whatever_its_size(bob, nodes, django_assert_num_queries):
    stage = a_plan(a_fleet(nodes=nodes)).stages.get(index=1)

    with django_assert_num_queries(12):
        assert bob.get(f"/api/v1/stages/{stage.pk}").status_code == 200


@pytest.mark.parametrize("path", ["stages/{}", "stages/{}/bundle", "stages/{}/approvals"])
def test_who_may_see_a_stage(path, nobody, eve, bob):
    place = "/api/v1/" + path.format(a_plan().stages.first().pk)

    assert nobody.get(place).status_code == 401
    assert eve.get(place).status_code == 404
    assert bob.get(place).status_code == 200


def test_the_checks_of_a_stage_are_those_of_now_beside_what_the_start_was_told(bob):
    stage = a_stage_to_approve()

    told = bob.get(f"/api/v1/stages/{stage.pk}/checks").json()

    assert told["nodes"] == 3
    assert told["seen_at"] is not None
    assert "image-untried" in [check["code"] for check in told["checks"]]
    assert told["at_start"]["at"] == "2026-11-21T12:00:00Z"
    assert [check["code"] for check in told["at_start"]["warned"]] == ["unmeasured", "no-wait"]


def test_a_stranger_reads_no_checks(eve):
    stage = a_stage_to_approve()

    assert eve.get(f"/api/v1/stages/{stage.pk}/checks").status_code == 404
