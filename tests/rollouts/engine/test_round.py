"""Whole rounds against an API server: what they ask of it, in which order, and what a crash leaves."""

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from kube import client
from kube.client.errors import error_for
from people.models import AuditEntry
from people.models.audit_entry import broken_links
from rollouts.commands import plan_control
from rollouts.engine import round as rounds
from rollouts.engine.act import holds, waves
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide.write_failures import PACE
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import GateAnswer, Hold, Plan
from rollouts.models.plan import LEASE
from simulator.faults.error_500 import Error500
from tests.rollouts.engine.ground import CANARY, NEW, NODES, OLD, REST, Ground
from tests.variants import nightly_but_first
from wording.lists import names


class KilledError(BaseException):
    """The process is gone: nothing after this line ran."""


def killed(*_args, **_given):
    raise KilledError


def after(act: Callable) -> Callable:
    def and_then(*args, **given):
        act(*args, **given)
        raise KilledError

    return and_then


def test_every_node_is_held_and_seen_to_be_before_the_version_is_written(ground: Ground):
    """Z1."""
    ground.start()

    ground.rounds(3)

    paths = [entry["path"].rsplit("/", 1)[-1] for entry in ground.writes()]
    assert paths == [*NODES, "h100"]
    assert ground.plan.state == PlanState.PROMOTING
    assert ground.plan.armed_since is not None


def test_a_wave_is_recorded_before_it_is_released(ground: Ground):
    ground.armed()

    ground.round()

    target = ground.target()
    assert ground.releases() == [CANARY]
    assert target.state == TargetState.RELEASING
    assert target.wave.number == 1
    assert target.baseline["driver_version"] == OLD
    assert ground.held() == set(REST)


def test_a_release_is_seen_in_the_rows_before_it_counts_as_done(ground: Ground):
    ground.armed()

    ground.rounds(2)

    assert ground.target().state == TargetState.RELEASED
    assert ground.target().released_at is not None


POINTS = {
    "before the intent": (waves, "_intend", killed),
    "between intent and act": (holds, "free_node", killed),
    "between act and result": (holds, "free_node", after(holds.free_node)),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_worker_neither_loses_nor_doubles_a_release(ground: Ground, monkeypatch, point: str):
    module, name, dies = POINTS[point]
    ground.armed()
    with monkeypatch.context() as crash:
        crash.setattr(module, name, dies)
        with pytest.raises(KilledError):
            ground.round()

    ground.round()
    assert ground.plan.lease_owner == "worker-1"
    ground.clock.move(seconds=LEASE.total_seconds())
    ground.rounds(3)

    assert ground.releases() == [CANARY]
    assert ground.target().state == TargetState.RELEASED
    assert ground.stage().waves.count() == 1


def test_a_worker_killed_in_the_middle_of_holding_leaves_nothing_out(ground: Ground, monkeypatch):
    """Z1: resumable."""
    ground.start()
    with monkeypatch.context() as crash:
        crash.setattr(holds, "hold_node", after(holds.hold_node))
        with pytest.raises(KilledError):
            ground.round()
    assert len(ground.held()) == 1

    ground.clock.move(seconds=LEASE.total_seconds())
    ground.rounds(3)

    assert ground.held() == set(NODES)
    assert ground.plan.state == PlanState.PROMOTING
    assert not Hold.objects.filter(plan=ground.plan).unfinished().exists()


def test_the_rows_may_be_late_without_anything_being_done_twice(ground: Ground):
    """Z25: two rounds on the same old rows."""
    ground.armed()
    ground.round()

    ground.round(look=False)
    ground.round(look=False)

    assert ground.releases() == [CANARY]


def test_a_halt_between_two_rounds_holds_again_what_had_not_begun(ground: Ground):
    """Z3."""
    ground.armed()
    ground.rounds(2)
    plan_control.halt(ground.plan, actor=ground.ada, reason="Something is odd.", now=ground.clock())

    ground.round()

    assert ground.held() == set(NODES)
    assert ground.target().state == TargetState.HELD
    assert ground.plan.state == PlanState.HALTED


def test_what_has_begun_when_somebody_halts_is_followed_to_its_end(ground: Ground):
    ground.armed()
    ground.rounds(2)
    ground.set_state(CANARY, "pod-restart-required")
    plan_control.halt(ground.plan, actor=ground.ada, reason="Something is odd.", now=ground.clock())

    ground.rounds(2)

    assert ground.held() == set(REST)
    assert ground.target().state == TargetState.CHANGING


@pytest.mark.parametrize("command", nightly_but_first([plan_control.halt, plan_control.abort, plan_control.roll_back]))
def test_a_command_while_a_round_looks_is_no_bug(ground: Ground, monkeypatch, command: Callable):
    """It lands between the reading of the plan and of its stages: a snapshot of two moments is not decided on."""
    ground.armed()
    ground.rounds(2)
    from rollouts.engine import round as rounds

    asks = rounds.ask_cluster

    def then_somebody_commands(plan, connection):
        command(Plan.objects.get(pk=plan.pk), actor=ground.ada, reason="Something is odd.", now=ground.clock())
        return asks(plan, connection)

    monkeypatch.setattr(rounds, "ask_cluster", then_somebody_commands)
    ground.round()

    ground.plan.refresh_from_db()
    assert ground.plan.waiting_for in plan_control.SAYS.values()  # of the command, until the next round has looked
    assert not GateAnswer.objects.filter(stage__plan=ground.plan, at=ground.clock()).exists()


def test_a_command_during_a_round_is_no_bug(ground: Ground, monkeypatch):
    """A halt that lands between the decision and its moves: the round gives way, and the next one is soon."""
    ground.armed()
    ground.stage().targets.update(state=TargetState.EXCLUDED)
    make_moves = rounds.make_moves

    def somebody_halts_first(plan, stages, moves, *, now):
        plan_control.halt(Plan.objects.get(pk=plan.pk), actor=ground.ada, reason="Now.", now=now)
        make_moves(plan, stages, moves, now=now)

    before = ground.clock()
    with monkeypatch.context() as race:
        race.setattr(rounds, "make_moves", somebody_halts_first)
        ground.round()

    assert ground.stage().state == StageState.HALTED
    assert ground.plan.state == PlanState.HALTED
    assert ground.plan.next_look_at <= before + timedelta(seconds=1)


def test_a_command_during_a_round_is_looked_at_as_soon_as_that_ends(ground: Ground, monkeypatch):
    """Its own message found somebody at it, and the sweep may be a while away."""
    ground.armed()
    carry_out, told = rounds.carry_out, list[int]()

    def somebody_halts_after_it(plan, act, *args, **given):
        carry_out(plan, act, *args, **given)
        plan_control.halt(Plan.objects.get(pk=plan.pk), actor=ground.ada, reason="Now.", now=ground.clock())

    monkeypatch.setattr(Plan, "queue_round", told.append)
    ground.round()
    assert told == []  # nobody has said anything
    monkeypatch.setattr(rounds, "carry_out", somebody_halts_after_it)
    ground.round()

    assert told == [ground.plan.pk]


def test_the_stop_switch_in_the_cluster_stops_everything(ground: Ground):
    """Z33."""
    ground.armed()
    ground.rounds(2)
    ground.stop_everything("Power cut in hall 2.")

    ground.round()

    assert "Power cut in hall 2." in ground.plan.waiting_for
    assert ground.held() == set(NODES)


def test_a_foreign_version_halts_and_keeps_the_holds(ground: Ground):
    """Z9."""
    ground.armed()
    ground.write_version("570.1.1")

    ground.rounds(2)

    assert ground.plan.state == PlanState.HALTED
    assert "570.1.1" in ground.plan.reason
    assert ground.held() == set(NODES)


def test_a_failing_api_server_moves_nothing_and_is_named(ground: Ground):
    ground.armed()
    ground.simulation.board.put(Error500(share=1.0, code=503, path="/apis"))

    ground.round(look=False)

    assert ground.releases() == []
    assert ground.plan.state == PlanState.PROMOTING
    assert ground.plan.waiting_for.startswith("north: ")
    assert ground.plan.next_look_at > ground.clock()


def test_a_throttled_round_comes_back_when_it_may(ground: Ground):
    """Z1, Z30: 429 carries Retry-After, here one second."""
    ground.start()
    ground.simulation.board.put(Error500(share=1.0, code=429, path="/api/v1/nodes"))

    before = ground.clock()
    ground.round(look=False)

    assert ground.held() == set()
    assert ground.plan.next_look_at == before + timedelta(seconds=1)
    ground.simulation.board.clear("error_500")
    ground.round()
    assert ground.held() == set(NODES)


def test_a_cluster_that_was_not_seen_for_long_lets_nothing_go(ground: Ground):
    """Z25."""
    ground.armed()
    ground.clock.move(minutes=5)

    ground.round(look=False)

    assert ground.releases() == []
    assert "was last observed at" in ground.plan.waiting_for


def test_a_pause_that_a_person_ended_is_not_put_back_at_once(ground: Ground):
    """Out of wait timeout the plan pauses and asks; who says "go on" has given it another wait timeout."""
    ground.armed()
    ground.stage().targets.update(state=TargetState.CHANGED, state_since=ground.clock())
    soaking = {"state": StageState.SOAKING, "timeout_s": 60, "gate_options": {"operands_ready": {}}}
    ground.plan.stages.filter(index=0).update(**soaking)
    Hold.objects.filter(plan=ground.plan, node_name=CANARY).update(is_wanted=False)
    ground.free(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.take_the_new_driver(CANARY)
    ground.clock.move(seconds=120)
    ground.rounds(2)
    assert "a person decides" in ground.plan.commands.in_force().get().reason

    plan_control.resume(ground.plan, actor=ground.ada, reason="Wait on.", now=ground.clock())
    ground.rounds(2)
    assert not ground.plan.commands.in_force().exists()

    ground.clock.move(seconds=120)
    ground.rounds(2)
    assert ground.plan.commands.in_force().exists()


def test_a_second_worker_finds_the_lease_taken(ground: Ground):
    ground.armed()
    other = Plan.objects.get(pk=ground.plan.pk)
    other.take_lease(owner="worker-2", now=ground.clock())

    ground.round()

    assert ground.releases() == []
    assert ground.plan.lease_owner == "worker-2"


def test_a_plan_that_is_given_up_leaves_no_trace_in_the_cluster(ground: Ground):
    """Z33: also where the rows never showed the labels."""
    ground.start()
    ground.round()
    assert ground.held() == set(NODES)
    plan_control.abort(ground.plan, actor=ground.ada, reason="Not today.", now=ground.clock())

    ground.round(look=False)
    ground.round(look=False)
    ground.rounds(2)

    assert ground.held() == set()
    assert not any("quarterdeck" in key for name in NODES for key in ground.node(name)["metadata"]["annotations"])
    assert ground.plan.state == PlanState.ABORTED


def test_the_audit_of_a_whole_plan_holds_together(ground: Ground):
    ground.armed()
    ground.round()
    plan_control.halt(ground.plan, actor=ground.ada, reason="Odd.", now=ground.clock())
    ground.rounds(2)
    plan_control.roll_back(ground.plan, actor=ground.ada, reason="Back.", now=ground.clock())
    for name in NODES:
        ground.set_state(name, "upgrade-done")
    ground.rounds(6)

    chain = AuditEntry.objects.filter(subject=ground.plan.mark)
    assert ground.plan.state == PlanState.ROLLED_BACK, ground.plan.waiting_for
    assert list(broken_links(chain)) == []
    assert [entry.verb for entry in chain] == [
        "draft",
        "start",
        "become promoting",
        "halt",
        "rollback",
        "become rolled-back",
    ]


def specs(ground: Ground) -> dict[str, dict]:
    return {name: ground.node(name)["spec"] for name in NODES}


@pytest.mark.parametrize("verb", nightly_but_first([plan_control.roll_back, plan_control.abort]))
def test_of_a_node_only_labels_and_annotations_are_written_on_the_way_there_and_back(ground: Ground, verb: Callable):
    """Z19, Z20: no taint, and no cordon that nobody asked for."""
    before = specs(ground)

    ground.walk()
    ground.rounds(2)
    verb(ground.plan, actor=ground.ada, reason="Back.", now=ground.clock())
    for name in NODES:
        ground.set_state(name, "upgrade-done")
    ground.rounds(6)

    written = [one for one in ground.simulation.log.since(0) if one["method"] == "PATCH" and "/nodes/" in one["path"]]
    ours = [operation["path"] for one in written for operation in one["body"] if operation["op"] != "test"]
    assert ours
    assert [path for path in ours if not path.startswith(("/metadata/labels", "/metadata/annotations"))] == []
    assert specs(ground) == before


def test_a_rollback_puts_the_version_back_and_frees_whom_nobody_changed(ground: Ground):
    """Z5."""
    ground.armed()
    plan_control.roll_back(ground.plan, actor=ground.ada, reason="Back.", now=ground.clock())
    ground.writes()

    ground.rounds(3)
    for name in NODES:
        assert "nvidia.com/gpu-driver-upgrade-state" not in ground.labels(name)
        ground.set_state(name, "upgrade-done")
    ground.rounds(2)

    assert ground.plan.state == PlanState.ROLLED_BACK
    assert ground.held() == set()
    assert ground.version() == OLD


@pytest.mark.nightly
def test_a_rollback_does_not_end_with_a_node_that_failed_on_its_way_and_says_what_helps(ground: Ground):
    """Z5: the driver pod was made anew and crashes; once it is Ready the operator goes on by itself."""
    ground.armed()
    ground.round()
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(3)
    plan_control.roll_back(ground.plan, actor=ground.ada, reason="It is slow.", now=ground.clock())
    ground.rounds(3)
    for name in NODES:
        ground.set_state(name, "upgrade-required" if name == CANARY else "upgrade-done")
    ground.rounds(6)
    went_back = CANARY in ground.releases()
    ground.set_state(CANARY, "upgrade-failed")
    ground.rounds(3)

    assert went_back, ground.plan.waiting_for
    assert ground.plan.state == PlanState.ROLLING_BACK
    assert f"{CANARY}: the driver pod for {OLD} exists and does not become Ready" in ground.plan.waiting_for


def forbidden(*names: str):
    """As an API server that lets us write no such node any more."""
    real = client.patch_node

    def patch(connection, name, patch):
        if name in names:
            raise client.Forbidden(f'nodes "{name}" is forbidden: User "quarterdeck" cannot patch resource "nodes".')
        return real(connection, name, patch)

    return patch


def test_a_node_that_may_not_be_written_is_named_with_why_and_tried_again_at_a_pace(ground: Ground, monkeypatch):
    """What is wrong stands in no log of theirs: whoever took the right away looks here."""
    ground.start()
    monkeypatch.setattr(client, "patch_node", forbidden(*NODES))
    ground.rounds(2)

    began = ground.clock()
    ground.round()

    assert ground.held() == set()
    assert ground.plan.waiting_for == (
        f"Holding every node of the driver object before {NEW} is written. {names(NODES)} could not be written: "
        f'nodes "{NODES[0]}" is forbidden: User "quarterdeck" cannot patch resource "nodes".'
    )
    assert ground.plan.next_look_at == began + PACE


def test_one_node_that_may_not_be_written_slows_down_no_other(ground: Ground, monkeypatch):
    ground.start()
    monkeypatch.setattr(client, "patch_node", forbidden(NODES[0]))
    ground.rounds(3)
    assert ground.held() == {*NODES[1:]}
    assert f"{NODES[0]} could not be written:" in ground.plan.waiting_for

    monkeypatch.undo()
    ground.rounds(3)

    assert ground.held() == {*NODES}
    assert "could not be written" not in ground.plan.waiting_for


WEBHOOK = 'Internal error occurred: failed calling webhook "gold.example.com": context deadline exceeded'


def test_a_webhook_that_fails_for_one_node_keeps_no_other_from_being_held(ground: Ground, monkeypatch):
    """It is the first of them, and the API server is well."""
    ground.start()
    monkeypatch.setattr(client, "patch_node", failing(NODES[0]))

    ground.rounds(3)

    assert ground.held() == {*NODES[1:]}
    assert ground.plan.waiting_for.endswith(f"{NODES[0]} could not be written: {WEBHOOK}.")


@pytest.mark.parametrize("sick", [CANARY, REST[0]])
def test_a_webhook_that_fails_for_one_node_keeps_no_other_from_being_held_again(sick: str, ground: Ground, monkeypatch):
    """Z3: until its label is back, the operator may begin. One was let go, another somebody else has freed."""
    ground.armed()
    ground.round()
    ground.free(REST[0])
    monkeypatch.setattr(client, "patch_node", failing(sick))

    plan_control.halt(ground.plan, actor=ground.ada, reason="Hot.", now=ground.clock())
    ground.rounds(3)

    assert ground.held() == {*NODES} - {sick}
    assert f"{sick} could not be written: {WEBHOOK}" in ground.plan.waiting_for


def failing(*names: str):
    """As an API server that must ask a webhook of these nodes, which does not answer."""
    real = client.patch_node

    def patch(connection, name, patch):
        if name in names:
            raise error_for(500, json.dumps({"kind": "Status", "code": 500, "message": WEBHOOK}).encode())
        return real(connection, name, patch)

    return patch


def test_nodes_that_could_not_be_written_come_last(ground: Ground, monkeypatch):
    """Of thousands whose webhook takes its ten seconds, an act has time for a few: the same ones each round."""
    ground.start()
    monkeypatch.setattr(client, "patch_node", forbidden(*NODES[:2]))
    ground.round()
    monkeypatch.setattr("rollouts.engine.act.writer.LONGEST", timedelta(0))
    tried: list[str] = []
    monkeypatch.setattr(Writer, "some", lambda _, nodes: tried.extend(nodes.values()) or iter(()))

    ground.round()

    assert tried[-2:] == [*NODES[:2]]


@pytest.mark.nightly
def test_a_label_that_may_not_be_taken_off_is_named_with_why(ground: Ground, monkeypatch):
    ground.start()
    ground.rounds(2)
    plan_control.abort(ground.plan, actor=ground.ada, reason="No.", now=ground.clock())
    monkeypatch.setattr(client, "patch_node", forbidden(REST[0]))

    ground.rounds(3)

    assert ground.plan.state == PlanState.ABORTING
    assert ground.held() == {REST[0]}
    assert f"{REST[0]} could not be written: nodes" in ground.plan.waiting_for
