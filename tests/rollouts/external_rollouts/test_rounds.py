"""Rounds of what others drive, on rows: when it begins, what is written down, twice, killed, and when it ends."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Bookmark, Cluster, DriverObject, Node, Operand, OperandRevision, Pod
from gpu.labels import UPGRADE_SKIP, UPGRADE_STATE
from gpu.operands import VALIDATOR
from health.rules.base import Severity
from rollouts.external_rollouts import external_rollout_round
from rollouts.external_rollouts.external_rollout_round import run_external_rollout, take_up
from rollouts.external_rollouts.observations import STILL
from rollouts.findings.external_rollouts import FAILING
from rollouts.gates.base import UNTESTED
from rollouts.lifecycle import ExternalRolloutState, TargetState
from rollouts.models import ExternalGateAnswer, ExternalRollout, ExternalRolloutNode
from rollouts.models.external_rollout import LEASE
from rollouts.queries.external_rollouts import NOT_SHOWN, shown_external_rollouts
from rollouts.tasks import run_leased, sweep_rounds, wake_plans_of
from tests.make import NOON, a_node, a_pod, a_user
from tests.reports import told
from tests.rollouts.make import NEW, NEW_HASH, OLD, OLD_HASH
from tests.rollouts.rows import a_driver_cluster, a_started_plan

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


class Others:
    """A cluster in which somebody else rolls a driver out, as its rows show it."""

    def __init__(self, *, nodes: int = 3, **driver: Any) -> None:
        self.cluster = a_driver_cluster(nodes=nodes, **driver)
        Cluster.objects.filter(pk=self.cluster.pk).update(mode="follow")
        self.cluster.refresh_from_db()
        self.now = NOON
        for node in self.cluster.nodes.all():
            for operand in (VALIDATOR, "device-plugin"):
                a_pod(node, f"{operand}-{node.name}", namespace="gpu-operator", gpus=0, operand=operand)

    @property
    def driver(self) -> DriverObject:
        return self.cluster.driver_objects.get(kind="NVIDIADriver")

    @property
    def rollout(self) -> ExternalRollout:
        return ExternalRollout.objects.first() or pytest.fail("nothing is followed")

    def round(self, seconds: float = 2) -> ExternalRollout:
        self.now += timedelta(seconds=seconds)
        if self.is_seen:
            Bookmark.objects.filter(cluster=self.cluster).update(last_seen_at=self.now)
        take_up(now=self.now)
        for pk in list(ExternalRollout.objects.open().values_list("pk", flat=True)):
            run_external_rollout(pk, owner="worker-1", clock=lambda: self.now)
        return self.rollout

    is_seen = True

    def ask_for(self, version: str) -> None:
        self.cluster.driver_objects.filter(kind="NVIDIADriver").update(version=version)

    def node(self, number: int, **given: Any) -> None:
        Node.objects.filter(cluster=self.cluster, name=f"node-{number}").update(**given)

    def change(self, number: int, **given: Any) -> None:
        """The operator is through with it: another driver pod, and what validates runs anew after it."""
        new = {"revision_hash": NEW_HASH, "created_at": self.now, "started_at": self.now}
        Pod.objects.filter(cluster=self.cluster, name=f"driver-{number}").update(**new)
        of_node = Pod.objects.filter(cluster=self.cluster, node_name=f"node-{number}", operand=VALIDATOR)
        of_node.update(uid=f"uid-anew-{number}", created_at=self.now, started_at=self.now)
        row = {"upgrade_state": "upgrade-done", "driver_version": NEW, "is_unschedulable": False}
        self.node(number, **row | given)

    def template(self) -> None:
        first = OperandRevision.objects.get(revision=1)
        first.pk, first.uid, first.revision, first.revision_hash = None, "uid-of-the-next", 2, NEW_HASH
        first.save()

    def back(self) -> None:
        """The earlier version again: the DaemonSet controller finds the earlier template, and makes it the newest."""
        self.ask_for(OLD)
        OperandRevision.objects.filter(revision=1).update(revision=3)

    def begin(self) -> ExternalRollout:
        """It stood for a while, then somebody wrote the new version, and the operator queued every node."""
        self.round()
        self.round()
        self.ask_for(NEW)
        self.template()
        self.node(0, upgrade_state="upgrade-required")
        self.node(1, upgrade_state="upgrade-required")
        self.node(2, upgrade_state="upgrade-required")
        return self.round()

    def serve(self) -> None:
        """A tenant's GPU pod becomes Ready on each node."""
        for node in self.cluster.nodes.all():
            a_pod(node, started_at=self.now, ready_since=self.now)

    def states(self) -> dict[str, str]:
        return dict(self.rollout.nodes.values_list("node_name", "state"))

    def answers(self) -> dict[str, str]:
        return dict(self.rollout.answers.filter(is_current=True).values_list("gate", "answer"))

    def says(self, gate: str) -> ExternalGateAnswer:
        return self.rollout.answers.get(is_current=True, gate=gate)

    def found(self) -> list[Any]:
        return [wrong for _, wrong in FAILING.say(self.cluster, now=self.now)]


@pytest.fixture
def others() -> Others:
    return Others()


def test_nothing_is_followed_where_the_mode_is_another():
    Others()
    for mode in ("observe-only", "operate"):
        Cluster.objects.update(mode=mode)
        take_up(now=NOON)
        assert not ExternalRollout.objects.exists()


def test_what_an_object_asks_for_is_kept_in_mind_before_anything_of_it_changes(others: Others):
    standing = others.round()

    assert (standing.state, standing.to_version, standing.seen_at) == (ExternalRolloutState.STANDING, OLD, others.now)
    assert {node.baseline["driver_version"] for node in standing.nodes.all()} == {OLD}
    assert not ExternalRollout.objects.told().exists()
    assert ExternalRollout.objects.count() == 1  # the ClusterPolicy says no driver there


def test_a_rollout_begins_when_somebody_writes_another_version(others: Others):
    rollout = others.begin()

    assert (rollout.state, rollout.from_version, rollout.to_version) == (ExternalRolloutState.ROLLING, OLD, NEW)
    assert rollout.reason == f"The object requests {NEW} now. Before, it requested {OLD}."
    assert others.states() == dict.fromkeys(("node-0", "node-1", "node-2"), TargetState.RELEASED)
    assert {node.baseline["driver_version"] for node in rollout.nodes.all()} == {OLD}
    assert rollout.nodes.first().baseline["operands"] == ["Device plugin", "Driver", "Validator"]


def test_a_rollout_begins_when_nodes_change_although_the_version_is_the_same(others: Others):
    """Somebody changed the template beside the version: the operator changes nodes all the same."""
    others.round()
    others.template()
    others.node(0, upgrade_state="cordon-required", is_unschedulable=True)
    rollout = others.round()

    assert (rollout.state, rollout.from_version, rollout.to_version) == (ExternalRolloutState.ROLLING, OLD, OLD)
    assert others.states()["node-0"] == TargetState.CHANGING
    assert rollout.nodes.get(node_name="node-0").baseline["allocatable"] == {"nvidia.com/gpu": 8}  # kept in mind
    assert others.states()["node-1"] == TargetState.RELEASED  # its pod is of the template before


def test_who_is_only_held_in_the_operators_queue_begins_nothing(others: Others):
    others.node(0, upgrade_state="upgrade-required", is_held=True)
    others.node(1, upgrade_state="upgrade-failed")
    others.round()
    assert others.round().state == ExternalRolloutState.STANDING


def test_nodes_are_counted_once_each_as_they_go(others: Others):
    others.begin()
    others.node(0, upgrade_state="pod-restart-required", is_unschedulable=True)
    others.node(1, is_held=True)
    others.round()

    progress = shown_external_rollouts([others.rollout])[0].progress
    assert (progress.changing, progress.held, progress.before) == (1, 1, 1)
    assert sum(number for _, number in progress.parts) == progress.total == 3
    assert progress.sentence == "0 of 3 nodes changed, 1 changing, 1 held, 1 not begun"

    Pod.objects.filter(node_name="node-2").delete()
    Node.objects.filter(name="node-2").delete()
    others.change(0)
    others.round()
    progress = shown_external_rollouts([others.rollout])[0].progress
    assert (progress.changed, progress.held, progress.gone, progress.total) == (1, 1, 1, 2)


def test_gates_are_asked_of_the_nodes_that_changed_so_far(others: Others):
    others.begin()
    others.change(0)
    others.round()

    assert others.says("driver_version").title == "2 of 3 nodes are still to change"
    assert set(others.answers().values()) == {"wait"}
    assert not others.found()


def test_a_node_with_fewer_gpus_than_before_is_where_a_plan_would_have_halted(others: Others):
    others.begin()
    others.change(0, allocatable={"nvidia.com/gpu": 7})
    others.round()
    others.round(seconds=180)

    assert others.answers()["allocatable_restored"] == "fail"
    (wrong,) = others.found()
    assert wrong.severity is Severity.CRITICAL
    assert wrong.title == "Rollout of NVIDIADriver h200 fails a gate"
    assert "node-0 offers fewer GPUs" in wrong.summary
    assert "Quarterdeck would have halted here" in wrong.summary
    assert f"Rollout: NVIDIADriver h200 from {OLD} to {NEW}\nDriven by: others" in told(wrong)
    assert "Progress: 1 of 3 nodes changed, 2 not begun" in told(wrong)
    assert f"{UPGRADE_SKIP}=true" in wrong.steps[1]
    assert wrong.steps[1].endswith(f"put {OLD} back: {others.rollout.its_component.command(OLD)}")

    others.change(1)
    others.change(2)
    others.round()
    (wrong,) = others.found()
    assert wrong.severity is Severity.WARNING  # nobody is left to be held
    assert UPGRADE_SKIP not in wrong.steps[1]

    others.node(0, allocatable={"nvidia.com/gpu": 8})
    others.round()
    assert not others.found()


def test_a_version_that_somebody_writes_into_the_cluster_policy_is_evaluated_alike(others: Others):
    """Z34: there the ClusterPolicy has the one version of the cluster, and no NVIDIADriver exists."""
    others.cluster.driver_objects.filter(kind="NVIDIADriver").delete()
    policy = others.cluster.driver_objects.get()
    others.cluster.driver_objects.update(version=OLD, uses_driver_crd=False)
    Operand.objects.filter(cluster=others.cluster).update(owner_uid=policy.uid)
    others.round()
    others.cluster.driver_objects.update(version=NEW)
    others.template()
    others.node(0, upgrade_state="upgrade-required")
    rollout = others.round()
    others.change(0, allocatable={"nvidia.com/gpu": 7})
    others.round()
    others.round(seconds=180)

    assert (rollout.object_kind, rollout.from_version, rollout.to_version) == ("ClusterPolicy", OLD, NEW)
    (wrong,) = others.found()
    assert "Quarterdeck would have halted here" in wrong.summary
    assert f"{UPGRADE_STATE}=upgrade-required {UPGRADE_SKIP}=true" in wrong.steps[1]
    assert f"put {OLD} back: kubectl patch clusterpolicy cluster-policy " in wrong.steps[1]


def test_a_finding_of_an_object_that_git_writes_leads_there():
    others = Others(owned_by=["Argo CD application gpu"])
    others.begin()
    others.node(0, upgrade_state="upgrade-failed")
    others.round()

    (wrong,) = others.found()
    assert "Driven by: Argo CD application gpu\nProgress: 0 of 3" in told(wrong)
    assert f"put {OLD} back in the source of Argo CD application gpu" in wrong.steps[1]
    assert "kubectl patch" not in wrong.steps[1]


def test_it_comes_through_when_every_gate_has_passed_for_a_soak(others: Others):
    rollout = others.begin()
    for number in range(3):
        others.change(number)
    others.round()
    assert others.says("workloads_ready").cause == UNTESTED, "idle nodes prove nothing (Z41)"
    (shown,) = shown_external_rollouts([rollout])
    assert (shown.shown_state, shown.why) == (NOT_SHOWN, others.says("workloads_ready").sentence)
    assert "A Ready GPU pod of a tenant on each of these nodes is the proof" in shown.advice
    others.serve()
    others.round()
    assert {gate: answer for gate, answer in others.answers().items() if answer != "pass"} == {"soak": "wait"}
    for _ in range(29):
        others.round(seconds=59)
    assert others.rollout.state == ExternalRolloutState.ROLLING
    for _ in range(3):
        others.round(seconds=59)

    rollout.refresh_from_db()
    assert rollout.state == ExternalRolloutState.CAME_THROUGH
    assert rollout.ended_at is not None
    assert (others.rollout.state, others.rollout.to_version) == (ExternalRolloutState.STANDING, NEW)


def test_what_is_not_seen_is_no_pass_and_moves_no_node(others: Others):
    rollout = others.begin()
    for number in range(3):
        others.change(number)
    others.round()
    others.round()
    others.is_seen = False
    others.node(0, upgrade_state="cordon-required")
    others.round(seconds=120)
    for _ in range(40):
        others.round(seconds=59)

    rollout.refresh_from_db()
    assert rollout.state == ExternalRolloutState.ROLLING
    assert set(others.answers().values()) == {"wait"}
    assert "cannot be seen" in others.says("driver_version").title
    assert set(others.states().values()) == {TargetState.CHANGED}


def test_a_node_that_began_before_its_rollout_was_seen_is_compared_with_what_was_kept_in_mind(others: Others):
    """Workers were slow, or away: the operator had a node cordoned by then."""
    others.round()
    others.ask_for(NEW)
    others.template()
    others.node(0, upgrade_state="drain-required", is_unschedulable=True)
    others.round(seconds=900)
    others.change(0, allocatable={"nvidia.com/gpu": 7})
    others.round()
    others.round(seconds=180)

    assert others.says("allocatable_restored").nodes == ["node-0"]
    assert others.answers()["allocatable_restored"] == "fail"


def test_what_is_kept_in_mind_is_looked_at_anew_every_ten_minutes(others: Others):
    others.round()
    others.node(0, allocatable={"nvidia.com/gpu": 6})
    kept = others.round(seconds=60).nodes.get(node_name="node-0")
    assert kept.baseline["allocatable"] == {"nvidia.com/gpu": 8}
    kept = others.round(seconds=600).nodes.get(node_name="node-0")
    assert kept.baseline["allocatable"] == {"nvidia.com/gpu": 6}


def test_a_node_that_had_begun_when_following_began_is_no_pass_and_no_failure(others: Others):
    """Its baseline is not known: nobody says that it has all its GPUs, nor that it lacks some."""
    others.ask_for(NEW)
    others.template()
    others.node(0, upgrade_state="drain-required")
    others.round()
    for number in range(3):
        others.change(number)
    for _ in range(20):
        others.round(seconds=59)

    answers = others.answers()
    assert answers["allocatable_restored"] == answers["operands_ready"] == "wait"
    assert others.says("operands_ready").cause == "unknown-before"
    assert not others.found()
    assert others.rollout.state == ExternalRolloutState.ROLLING


def test_what_was_on_its_last_node_when_following_began_is_given_up(others: Others):
    others.ask_for(NEW)
    others.template()
    for number in range(3):
        others.change(number, upgrade_state="uncordon-required")
    rollout = others.round()
    for number in range(3):
        others.change(number)
    others.round()

    rollout.refresh_from_db()
    assert rollout.state == ExternalRolloutState.GIVEN_UP
    assert (
        "The rollout ended before Quarterdeck observed it, so the earlier state of its nodes is unknown"
        in rollout.reason
    )
    assert others.rollout.state == ExternalRolloutState.STANDING


def test_tenants_of_a_node_are_compared_with_those_it_had_last(others: Others):
    others.begin()
    a_pod(Node.objects.get(name="node-0"), "late", owner_kind="ReplicaSet", owner_name="late")
    others.round(seconds=61)

    assert others.rollout.nodes.get(node_name="node-0").baseline["workloads"] == {"ReplicaSet team-a/late": 1}


def test_a_node_is_not_looked_at_anew_once_its_driver_pod_is_another(others: Others):
    """Without the upgrade controller no label says that it began: what is half done is nothing to compare with."""
    others.begin()
    before = others.rollout.nodes.get(node_name="node-0").baseline
    Pod.objects.filter(name="driver-0").update(revision_hash=NEW_HASH)
    others.node(0, allocatable={}, upgrade_state="")
    others.round(seconds=120)

    node = others.rollout.nodes.get(node_name="node-0")
    assert (node.state, node.baseline) == (TargetState.CHANGING, before)


def test_another_version_meanwhile_is_followed_anew_and_compared_with_what_was_before_both(others: Others):
    rollout = others.begin()
    others.change(0, allocatable={"nvidia.com/gpu": 7})
    others.round()
    others.ask_for(OLD)
    others.round()

    rollout.refresh_from_db()
    back = others.rollout
    assert (rollout.state, back.state) == (ExternalRolloutState.REPLACED, ExternalRolloutState.ROLLING)
    assert (back.from_version, back.to_version) == (NEW, OLD)
    assert back.nodes.get(node_name="node-0").baseline["allocatable"] == {"nvidia.com/gpu": 8}
    assert len(ExternalRollout.objects.open()) == 1


@pytest.mark.nightly
def test_what_was_not_reached_when_the_earlier_version_came_back_is_not_evaluated(others: Others):
    """Its validator has not run since, and need not: it has the driver pod that it had all along."""
    others.begin()
    others.change(0)
    others.round()
    others.back()
    others.round()
    others.change(0, driver_version=OLD)
    Pod.objects.filter(name="driver-0").update(revision_hash=OLD_HASH)
    for number in (1, 2):
        others.node(number, upgrade_state="upgrade-done")
    others.serve()
    others.round()
    for _ in range(35):
        others.round(seconds=59)

    back = ExternalRollout.objects.told().get(to_version=OLD)
    assert back.state == ExternalRolloutState.CAME_THROUGH
    assert shown_external_rollouts([back])[0].progress.changed == 3


def test_a_version_that_is_taken_back_before_a_node_changed_leaves_nothing_to_evaluate(others: Others):
    others.begin()
    others.back()
    for number in range(3):
        others.node(number, upgrade_state="upgrade-done")
    others.round()
    others.round()

    back = ExternalRollout.objects.told().get(to_version=OLD)
    assert (back.state, back.reason) == (ExternalRolloutState.GIVEN_UP, "No node must change for this version.")


def test_what_nobody_drives_any_more_is_given_up(others: Others):
    rollout = others.begin()
    others.node(2, is_held=True)
    others.round(seconds=STILL.total_seconds() + 60)
    others.round(seconds=STILL.total_seconds() + 60)

    rollout.refresh_from_db()
    assert rollout.state == ExternalRolloutState.GIVEN_UP


@pytest.mark.parametrize("mode", ["observe-only", "operate"])
def test_it_is_given_up_when_the_mode_becomes_another(others: Others, mode: str):
    rollout = others.begin()
    others.node(0, upgrade_state="upgrade-failed")
    others.round()
    assert others.found()
    Cluster.objects.update(mode=mode)
    others.round()

    rollout.refresh_from_db()
    assert (rollout.state, rollout.reason) == (
        ExternalRolloutState.GIVEN_UP, f"The mode of {others.cluster.name} is {mode} now.",
    )  # fmt: skip
    assert not ExternalRollout.objects.open().exists()
    assert not others.found()


def test_what_only_stands_is_forgotten_when_the_mode_becomes_another(others: Others):
    others.round()
    Cluster.objects.update(mode="operate")
    run_external_rollout(others.rollout.pk, owner="worker-1", clock=lambda: others.now)

    assert not ExternalRollout.objects.exists()


def test_an_object_that_is_gone_is_followed_no_more_once_that_is_seen(others: Others):
    rollout = others.begin()
    others.driver.delete()
    others.is_seen = False
    others.round(seconds=120)
    assert others.rollout.state == ExternalRolloutState.ROLLING
    others.is_seen = True
    others.round()

    rollout.refresh_from_db()
    assert (rollout.state, "is gone" in rollout.reason) == (ExternalRolloutState.GIVEN_UP, True)


def test_a_plan_of_ours_is_nothing_that_others_drive():
    others = Others()
    Cluster.objects.update(mode="operate")
    others.cluster.refresh_from_db()
    a_started_plan(others.cluster, a_user("ada", role="operator"))
    Cluster.objects.update(mode="follow")
    others.round()
    others.ask_for(NEW)

    standing = others.round()
    assert (standing.state, standing.to_version) == (ExternalRolloutState.STANDING, NEW)


def test_a_message_that_comes_twice_is_one_round(others: Others):
    rollout = others.begin()
    taken = ExternalRollout.objects.get(pk=rollout.pk)
    assert rollout.take_lease(owner="worker-1", now=others.now)
    assert not taken.take_lease(owner="worker-2", now=others.now)

    others.change(0)
    run_external_rollout(rollout.pk, owner="worker-2", clock=lambda: others.now)
    assert others.states()["node-0"] == TargetState.RELEASED


def test_a_worker_that_was_thought_dead_writes_nothing(others: Others):
    rollout = others.begin()
    others.change(0)
    evaluate = external_rollout_round.evaluate

    def slowly(*args: Any, **given: Any) -> Any:
        later = others.now + LEASE
        assert ExternalRollout.objects.get(pk=rollout.pk).take_lease(owner="worker-2", now=later)
        return evaluate(*args, **given)

    with mock.patch.object(external_rollout_round, "evaluate", slowly):
        run_external_rollout(rollout.pk, owner="worker-1", clock=lambda: others.now)

    assert others.states()["node-0"] == TargetState.RELEASED
    assert not others.answers()
    assert ExternalRollout.objects.get(pk=rollout.pk).lease_owner == "worker-2"


class KilledError(BaseException):
    """The process is gone: nothing after this line ran."""


@contextmanager
def killed_at(what: str) -> Iterator[None]:
    with mock.patch.object(external_rollout_round, what, side_effect=KilledError), suppress(KilledError):
        yield


@pytest.mark.parametrize("point", ["write_answers", "_go_on"])
def test_a_worker_that_is_killed_leaves_a_round_that_the_next_one_ends(others: Others, point: str):
    rollout = others.begin()
    others.change(0)
    others.ask_for(OLD)
    with killed_at(point):
        others.round()
    assert others.rollout.state == ExternalRolloutState.ROLLING

    others.round(seconds=LEASE.total_seconds())
    rollout.refresh_from_db()
    assert rollout.state == ExternalRolloutState.REPLACED
    assert rollout.nodes.get(node_name="node-0").state == TargetState.CHANGED


def test_a_first_look_that_is_cut_off_is_taken_again_and_keeps_every_baseline(others: Others):
    others.round()
    others.node(0, upgrade_state="pod-restart-required", allocatable={})
    others.ask_for(NEW)
    with mock.patch.object(ExternalRollout, "move", side_effect=KilledError), suppress(KilledError):
        others.round()
    assert others.rollout.state == ExternalRolloutState.STANDING

    others.round(seconds=LEASE.total_seconds())

    assert others.rollout.state == ExternalRolloutState.ROLLING
    assert others.rollout.nodes.get(node_name="node-0").baseline["allocatable"] == {"nvidia.com/gpu": 8}


def test_a_replacing_version_begins_in_the_next_round_where_this_one_is_cut_off(others: Others):
    others.begin()
    others.change(0, allocatable={"nvidia.com/gpu": 7})
    others.round()
    others.ask_for(OLD)
    with killed_at("_begun_before"):
        others.round()
    assert others.rollout.state == ExternalRolloutState.STANDING

    others.round(seconds=LEASE.total_seconds())

    back = others.rollout
    assert (back.state, back.from_version, back.to_version) == (ExternalRolloutState.ROLLING, NEW, OLD)
    assert back.nodes.get(node_name="node-0").baseline["allocatable"] == {"nvidia.com/gpu": 8}


def test_what_failed_is_kept_when_it_is_over_and_nothing_else_is(others: Others):
    others.begin()
    others.round()
    others.round()
    first = others.says("driver_version")
    others.change(0)
    others.round()
    assert others.says("driver_version").pk == first.pk  # its numbers moved
    others.node(0, driver_version="999.1.1")
    others.node(1, upgrade_state="upgrade-failed")
    others.round()

    assert others.answers()["failure_budget"] == "fail"
    assert not ExternalGateAnswer.objects.filter(is_current=False).exists(), "nobody asks for what waited or passed"
    assert others.rollout.failed_before() == []
    failing = others.says("failure_budget").sentence

    others.node(1, upgrade_state="upgrade-required")
    others.round()

    assert others.answers()["failure_budget"] != "fail"
    kept = [row.sentence for row in others.rollout.failed_before() if row.gate == "failure_budget"]
    assert kept == [failing]
    assert set(ExternalGateAnswer.objects.filter(is_current=False).values_list("answer", flat=True)) == {"fail"}


def test_a_cluster_of_many_nodes_costs_no_more_queries(others: Others):
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            others.round()
        return len(asked)

    others.begin()
    others.change(0)
    others.round()
    few = queries()
    for number in range(20):
        node = a_node(others.cluster, f"more-{number}", upgrade_state="upgrade-required")
        ExternalRolloutNode.objects.create(
            rollout=others.rollout, node_uid=node.uid, node_name=node.name, state="changing", state_since=NOON
        )
    others.round()
    assert queries() <= few + 1


def test_workers_take_up_what_is_due_and_are_woken_by_what_changes(others: Others, monkeypatch: pytest.MonkeyPatch):
    queued = list[int]()
    monkeypatch.setattr(ExternalRollout, "queue_round", queued.append)
    Bookmark.objects.update(last_seen_at=datetime.now(NOON.tzinfo))

    sweep_rounds(unknown="argument")
    (pk,) = queued
    run_leased(model="ExternalRollout", key=pk, unknown="argument")
    assert ExternalRollout.objects.get(pk=pk).seen_at is not None
    sweep_rounds()
    assert queued == [pk]
    wake_plans_of(cluster_id=others.cluster.pk)
    assert queued == [pk, pk]


def test_who_may_not_see_the_cluster_sees_nothing_of_it(others: Others):
    others.begin()

    assert not ExternalRollout.objects.visible_to(a_user("nobody")).exists()
    seeing = a_user("ada", role="viewer", on=others.cluster)
    assert ExternalRollout.objects.visible_to(seeing).count() == 1


def test_a_round_speaks_to_no_cluster(others: Others):
    """Z34: what it reads is rows, and the client is not even connected."""
    with mock.patch("kube.client.connect", side_effect=AssertionError("it was asked")):
        others.begin()
        others.change(0)
        others.round()
    assert json.dumps([node.baseline for node in others.rollout.nodes.all()])


def test_all_that_comes_due_together_is_looked_at_in_turn(monkeypatch):
    """So that a round of thousands of nodes ends within its lease; whoever waited longest comes first."""
    monkeypatch.setattr(external_rollout_round, "AT_ONCE", 2)
    others = Others(nodes=5)
    rollout = others.begin()
    took = dict(rollout.nodes.values_list("node_name", "baseline__at"))
    others.round(seconds=61)
    once = dict(rollout.nodes.values_list("node_name", "baseline__at"))
    others.round()
    others.round()

    assert sum(once[name] != at for name, at in took.items()) == 2
    assert all(at != took[name] for name, at in rollout.nodes.values_list("node_name", "baseline__at"))


def test_a_wake_in_the_middle_of_a_round_is_not_lost(others: Others):
    rollout = others.begin()
    assert rollout.take_lease(owner="worker-1", now=others.now)

    wake_plans_of(cluster_id=others.cluster.pk)
    ExternalRollout.objects.filter(pk=rollout.pk).update(next_look_at=others.now)  # as the wake did, by this clock
    rollout.end_lease(now=others.now, next_look_at=others.now + MINUTE)

    assert ExternalRollout.objects.due(now=others.now).filter(pk=rollout.pk).exists()


def test_a_node_that_goes_while_it_is_looked_at_ends_no_round():
    """The next one says that it is gone."""
    others = Others()
    others.round()
    others.ask_for(NEW)
    others.round()
    truly = external_rollout_round.baselines

    def gone_meanwhile(*given: Any, **named: Any) -> dict[str, Any]:
        Node.objects.filter(cluster=others.cluster, name="node-2").delete()
        return truly(*given, **named)

    ExternalRolloutNode.objects.update(baseline=None)
    with mock.patch.object(external_rollout_round, "baselines", gone_meanwhile):
        others.round()
    others.round()

    assert others.rollout.nodes.get(node_name="node-2").state == TargetState.EXCLUDED
    assert [node.node_name for node in others.rollout.nodes.all() if node.baseline is None] == ["node-2"]
