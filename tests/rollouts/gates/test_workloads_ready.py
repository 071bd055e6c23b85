"""Hazard Z26: half the inference pods no longer run after a driver change, and everything else is green."""

from dataclasses import replace
from datetime import timedelta

import pytest

from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.base import UNTESTED, Answer, TestJobEvidence
from rollouts.gates.workloads_ready import WorkloadsReady
from tests.make import NOON
from tests.rollouts.make import a_baseline, a_held_target, a_pod_on_it, a_target, evidence, values_of

PATIENCE = timedelta(minutes=10)
GATE = WorkloadsReady(PATIENCE)
OWNER = "ReplicaSet team-a/model"
LONG_AGO = NOON - PATIENCE - timedelta(seconds=1)


OLD_KERNEL, NEW_KERNEL = {"kernel": "5.15.0-151"}, {"kernel": "6.8.0-60"}


def untested(name: str = "node-1", **given):
    """A changed node on which no test Job has run."""
    return a_target(name, **{"test_job": None, "facts": OLD_KERNEL} | given)


def crashing(number: int = 0, **given):
    row = {"is_ready": False, "restarts": 3, "reason": "CrashLoopBackOff"}
    return a_pod_on_it(f"team-a/model-{number}", **row | given)


def test_passes_when_the_tenants_pods_run():
    result = GATE.evaluate(evidence(a_target(workloads=(a_pod_on_it(),))), now=NOON)

    assert result.answer is Answer.PASS
    assert values_of(result) == {
        "GPU pods of tenants": 1, "Ready": 1, "Broken": 0, "Tolerated": 0, "Pods are Ready on": "node-1",
    }  # fmt: skip


@pytest.mark.parametrize(("minutes", "answer"), [(9, Answer.WAIT), (11, Answer.FAIL)])
def test_a_pod_that_was_ready_and_restarts_has_its_time_again(minutes: int, answer: Answer):
    since = NOON - timedelta(minutes=minutes)
    pod = a_pod_on_it(is_ready=False, started_at=LONG_AGO, restarts=1, unready_since=since)

    assert GATE.evaluate(evidence(a_target(workloads=(pod,))), now=NOON).answer is answer


def test_a_pod_that_crashes_fails_the_stage_and_is_named():
    """Z26."""
    result = GATE.evaluate(evidence(a_target(workloads=(crashing(),))), now=NOON)

    assert result.answer is Answer.FAIL
    assert result.nodes == ("node-1",)
    assert result.sentence == "team-a/model-0 fails on node-1. CrashLoopBackOff."


def test_what_a_broken_pod_says_is_in_the_sentence_and_not_in_the_cause():
    """The cause is what a repeated failure is known by: a line of a program's may count on."""
    why = (
        "The program asked for more GPU memory than was free on its GPU. “CUDA out of memory. Tried to allocate 20 MiB”"
    )
    pods = (crashing(why=why), a_pod_on_it("team-a/silent", is_ready=False, started_at=LONG_AGO, why=why))

    said, silent = (GATE.evaluate(evidence(a_target(workloads=(pod,))), now=NOON) for pod in pods)

    assert said.title == "team-a/model-0 fails on node-1"
    assert said.summary == f"CrashLoopBackOff. {why}."
    assert said.cause == "CrashLoopBackOff"
    assert silent.title == "team-a/silent fails on node-1"
    assert silent.summary.startswith("No reason is reported. The program asked for more GPU memory")


def test_a_pod_that_loads_its_model_is_waited_for():
    loading = a_pod_on_it(is_ready=False, started_at=NOON - PATIENCE)

    result = GATE.evaluate(evidence(a_target(workloads=(loading,))), now=NOON)

    assert result.answer is Answer.WAIT
    assert "team-a/model-0 on node-1" in values_of(result)


def test_a_pod_that_loads_for_too_long_is_broken():
    stuck = a_pod_on_it(is_ready=False, started_at=LONG_AGO)

    assert GATE.evaluate(evidence(a_target(workloads=(stuck,))), now=NOON).answer is Answer.FAIL


def test_a_ready_pod_that_restarted_often_is_not_broken():
    restarted = a_pod_on_it(restarts=40)

    assert GATE.evaluate(evidence(a_target(workloads=(restarted,))), now=NOON).answer is Answer.PASS


@pytest.mark.parametrize("tolerated", [0, 1, 3])
def test_tolerates_n_and_fails_at_the_next(tolerated: int):
    """`tolerate = n` means that the (n+1)th fails, everywhere."""
    gate = WorkloadsReady(PATIENCE, tolerate=tolerated)

    def answer(broken: int) -> Answer:
        pods = (a_pod_on_it("team-a/fine"), *(crashing(number) for number in range(broken)))
        return gate.evaluate(evidence(a_target(workloads=pods)), now=NOON).answer

    assert answer(tolerated) is Answer.PASS
    assert answer(tolerated + 1) is Answer.FAIL


def test_a_node_that_had_tenants_and_has_none_since_proves_nothing():
    """An idle canary proves nothing (Z27)."""
    result = GATE.evaluate(evidence(untested(baseline=a_baseline(workloads={OWNER: 2}))), now=NOON)

    assert (result.answer, result.cause) == (Answer.WAIT, UNTESTED)
    assert result.nodes == ("node-1",)


def test_an_idle_canary_never_passes():
    """The case to pass: a driver that breaks every tenant's pod passed on two nodes that nobody used (Z27, Z41)."""
    result = GATE.evaluate(evidence(untested("node-1"), untested("node-2")), now=NOON)

    assert (result.answer, result.cause) == (Answer.WAIT, UNTESTED)
    assert result.nodes == ("node-1", "node-2")
    assert result.sentence == (
        "Nothing has tested the driver on 2 nodes. "
        "No tenant's GPU pod became Ready there with the new driver, and no test Job passed."
    )
    assert values_of(result) == {
        "GPU pods of tenants": 0, "Ready": 0, "Broken": 0, "Tolerated": 0, "Idle": "node-1, node-2",
    }  # fmt: skip


def test_a_pod_that_nothing_evicted_proves_nothing_until_it_becomes_ready_again():
    """A pod of a DaemonSet, or one that holds GPUs and does nothing, survives the change and is as Ready as before.

    A release is no change yet: until the pod of the new driver starts, every pod becomes Ready with the old one.
    """
    before, driver_at = a_baseline(workloads={OWNER: 1}), untested().driver_started_at
    stayed = a_pod_on_it(started_at=before.at - timedelta(days=9), ready_since=driver_at - timedelta(minutes=1))
    again = replace(stayed, ready_since=driver_at + timedelta(minutes=1))

    result = GATE.evaluate(evidence(untested(workloads=(stayed,), baseline=before)), now=NOON)

    assert (result.answer, result.cause) == (Answer.WAIT, UNTESTED)
    assert values_of(result)["Only pods from before the change on"] == "node-1"
    assert GATE.evaluate(evidence(untested(workloads=(again,), baseline=before)), now=NOON).answer is Answer.PASS


def test_a_driver_pod_that_was_recreated_after_the_change_takes_no_proof_away():
    pod = a_pod_on_it(started_at=NOON - timedelta(minutes=1))
    again = untested(workloads=(pod,), driver_started_at=NOON)
    unseen = untested(workloads=(pod, replace(pod, started_at=NOON - timedelta(minutes=2))), driver_started_at=None)

    assert GATE.evaluate(evidence(again), now=NOON).answer is Answer.PASS
    assert GATE.evaluate(evidence(unseen), now=NOON).answer is Answer.PASS
    older = replace(unseen, workloads=unseen.workloads[1:])
    assert GATE.evaluate(evidence(older), now=NOON).cause == UNTESTED, "it was Ready before the node was seen changed"


def test_where_nobody_knows_what_ran_before_there_is_no_proof_either():
    assert GATE.evaluate(evidence(untested(baseline=None)), now=NOON).cause == UNTESTED


def test_a_test_job_that_passed_is_proof():
    result = GATE.evaluate(evidence(a_target(baseline=a_baseline(workloads={OWNER: 2}))), now=NOON)

    assert result.answer is Answer.PASS
    assert values_of(result)["Test Job passed on"] == "node-1"


@pytest.mark.parametrize("outcome", [None, TestJobOutcome.FAILED, TestJobOutcome.UNKNOWN])
def test_a_test_job_that_has_not_passed_is_no_proof(outcome: TestJobOutcome | None):
    result = GATE.evaluate(evidence(untested(test_job=TestJobEvidence(outcome))), now=NOON)

    assert (result.answer, result.cause) == (Answer.WAIT, UNTESTED)


def test_a_busy_node_speaks_for_idle_ones_of_its_kind():
    shown = evidence(untested(workloads=(a_pod_on_it(),)), untested("node-2"), untested("node-3"))

    result = GATE.evaluate(shown, now=NOON)

    assert result.answer is Answer.PASS
    assert result.sentence == (
        "The driver is tested on 3 changed nodes. Tenants' pods ran or a test Job passed on each kind of node."
    )
    assert values_of(result)["Pods are Ready on"] == "node-1"
    assert values_of(result)["Idle"] == "node-2, node-3"


def test_a_busy_node_does_not_speak_for_an_idle_one_of_another_kernel():
    shown = evidence(untested(workloads=(a_pod_on_it(),)), untested("node-2", facts=NEW_KERNEL))

    result = GATE.evaluate(shown, now=NOON)

    assert (result.answer, result.cause, result.nodes) == (Answer.WAIT, UNTESTED, ("node-2",))
    assert values_of(result)["Untested kernel"] == "6.8.0-60"


def test_nobody_speaks_for_a_node_of_an_unknown_kind():
    shown = evidence(untested(workloads=(a_pod_on_it(),)), untested("node-2", facts={}))

    assert GATE.evaluate(shown, now=NOON).nodes == ("node-2",)


def test_a_busy_node_does_not_speak_for_one_that_had_tenants_and_lost_them():
    idle = untested("node-2", baseline=a_baseline(workloads={OWNER: 2}))

    assert GATE.evaluate(evidence(untested(workloads=(a_pod_on_it(),)), idle), now=NOON).nodes == ("node-2",)


def test_what_tenants_have_shown_stays_shown_after_their_pods_are_gone():
    result = GATE.evaluate(evidence(untested(has_served=True)), now=NOON)

    assert result.answer is Answer.PASS
    assert values_of(result)["Pods were Ready on"] == "node-1"


def test_a_tolerated_pod_is_not_called_ready():
    gate = WorkloadsReady(PATIENCE, tolerate=1)
    shown = evidence(a_target(workloads=(a_pod_on_it("team-a/fine"), crashing())))

    assert values_of(gate.evaluate(shown, now=NOON))["Ready"] == 1
    assert gate.evaluate(evidence(untested(workloads=(crashing(),))), now=NOON).cause == UNTESTED


def test_a_workload_that_has_fewer_ready_pods_than_before_is_waited_for():
    shown = evidence(a_target(), workloads_ready_before={OWNER: 4}, workloads_ready_now={OWNER: 3})

    result = GATE.evaluate(shown, now=NOON)

    assert result.answer is Answer.WAIT
    assert result.sentence == f"3 of 4 GPU pods are Ready again. Workload: {OWNER}."


def test_a_workload_that_vanished_is_waited_for():
    assert GATE.evaluate(evidence(a_target(), workloads_ready_before={OWNER: 1}), now=NOON).answer is Answer.WAIT


def test_a_pod_that_was_refused_is_pending_nowhere_and_missed_all_the_same():
    """Z31: nothing waits for room, no pod is unready; there is one fewer, and its owner's Events say why."""
    shown = evidence(
        a_target(),
        workloads_ready_before={OWNER: 4},
        workloads_ready_now={OWNER: 3},
        workloads_refused={OWNER: 'pods "model-x" is forbidden: exceeded quota: gpus'},
    )

    result = GATE.evaluate(shown, now=NOON)

    assert (result.answer, result.cause) == (Answer.WAIT, "refused")
    assert result.title == "3 of 4 GPU pods are Ready again"
    assert values_of(result)["Workload"] == OWNER
    assert values_of(result)["The API server rejects new pods"].endswith("exceeded quota: gpus")


def test_pods_that_fit_nowhere_say_nothing_about_the_driver():
    shown = evidence(
        a_target(),
        workloads_ready_before={OWNER: 4},
        workloads_ready_now={OWNER: 3},
        workloads_waiting_for_room={OWNER: 1},
    )

    assert GATE.evaluate(shown, now=NOON).answer is Answer.PASS


def test_pods_on_nodes_that_have_not_changed_are_not_evaluated():
    shown = evidence(a_target("node-1"), a_held_target("node-2", workloads=(crashing(),)))

    assert GATE.evaluate(shown, now=NOON).answer is Answer.WAIT


def test_a_workload_that_crashed_before_the_change_is_not_blamed_on_it_and_proves_nothing():
    sick = a_baseline(sick_owners=("ReplicaSet team-a/model",))

    result = GATE.evaluate(evidence(untested(baseline=sick, workloads=(crashing(),))), now=NOON)

    assert (result.answer, result.cause) == (Answer.WAIT, UNTESTED)
    assert values_of(result)["Crashed before the change"] == "ReplicaSet team-a/model"


def test_pods_of_owners_that_crashed_before_prove_nothing_though_they_run():
    sick = a_baseline(sick_owners=("ReplicaSet team-a/model",), workloads={OWNER: 1})

    assert GATE.evaluate(evidence(untested(baseline=sick, workloads=(a_pod_on_it(),))), now=NOON).cause == UNTESTED
