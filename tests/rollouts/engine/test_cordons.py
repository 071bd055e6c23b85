"""Z7, Z8: no pod comes to a changed node before its test Job has completed, and no cordon of ours is left."""

from typing import Any

import pytest
from django.core.management import call_command

from edges.transition_errors import LostRace
from fleet.models import Bookmark
from gpu.labels import CORDONED_BY, UPGRADE_SKIP, WAS_CORDONED
from kube import client
from operations.models import Disruption
from rollouts.commands import break_glass, plan_control
from rollouts.engine.act import cordons, waves
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide.acts import CordonAgain, Recall, ReleaseWave, Uncordon
from rollouts.findings.plan_findings import CORDON_LEFT, CORDON_TAKEN
from rollouts.gates.base import KEPT_EMPTY
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import Cordon, GateAnswer, Plan, PlanEvent, Target
from simulator.kinds import JOB, NODE
from tests.rollouts.engine.ground import CANARY, NODES, Ground
from tests.rollouts.engine.test_test_jobs import (
    GATES,
    NAMESPACE,
    KilledError,
    changed,
    completes,
    fails,
    jobs,
    pods_go,
    under_test,
)
from tests.variants import nightly_but_first

pytestmark = pytest.mark.rounds

WAVE = ReleaseWave(0, (CANARY,), "1 node.")
OTHER = next(name for name in NODES if name != CANARY)


def is_cordoned(ground: Ground, name: str = CANARY) -> bool:
    return bool(ground.node(name).get("spec", {}).get("unschedulable"))


def marks(ground: Ground, name: str = CANARY) -> dict[str, str]:
    has = ground.node(name)["metadata"].get("annotations", {})
    return {key: has[key] for key in (CORDONED_BY, WAS_CORDONED) if key in has}


def released(ground: Ground, **given: Any) -> Ground:
    ground.armed(gates=given.pop("gates", GATES), **given)
    ground.round()
    assert ground.releases() == [CANARY]
    return ground


def goes(ground: Ground, *states: str, name: str = CANARY) -> None:
    """As the operator takes it, which leaves a node cordoned that carries its note."""
    for state in states:
        ground.set_state(name, state)
        ground.round()


def is_done(ground: Ground, name: str = CANARY) -> None:
    ground.take_the_new_driver(name)
    ground.set_state(name, "upgrade-done")
    ground.patch_node(name, {"metadata": {"annotations": {WAS_CORDONED: None}}})


def row() -> Cordon:
    return Cordon.objects.latest("pk")


def uncordon(ground: Ground, name: str = CANARY) -> None:
    ground.patch_node(name, {"spec": {"unschedulable": None}})


def say(verb: Any, ground: Ground) -> None:
    verb(Plan.objects.get(pk=ground.plan.pk), actor=ground.ada, reason="No.", now=ground.clock())


def test_it_is_cordoned_in_the_patch_that_lets_it_go_and_the_operator_is_told_to_leave_it_so(ground: Ground):
    released(ground)

    assert is_cordoned(ground)
    assert marks(ground) == {CORDONED_BY: ground.plan.mark, WAS_CORDONED: "true"}
    assert row().placed_at is not None
    assert not any(is_cordoned(ground, name) for name in NODES if name != CANARY)
    assert PlanEvent.objects.filter(to="cordoned", target__node_name=CANARY).exists()


def test_no_other_write_comes_between_the_release_and_the_cordon(ground: Ground):
    ground.armed(gates=GATES)
    ground.round()

    (release,) = (
        one for one in ground.writes() if one["code"] == 200 and UPGRADE_SKIP.replace("/", "~1") in str(one["body"])
    )
    assert {"op": "add", "path": "/spec/unschedulable", "value": True} in release["body"]


def test_it_takes_pods_again_once_its_test_has_completed_and_its_stage_passes_after_that(ground: Ground):
    under_test(ground)
    assert is_cordoned(ground)

    completes(ground)
    ground.round()
    assert is_cordoned(ground)  # what came of the Job is known from this round on
    ground.round()

    assert not is_cordoned(ground)
    assert marks(ground) == {}
    assert ground.stage().state == StageState.SOAKING
    ground.round()
    assert ground.stage().state == StageState.PASSED
    assert row().ended_at is not None
    assert row().left_reason == ""
    assert PlanEvent.objects.filter(to="uncordoned", reason="The node takes pods again.").exists()


def test_a_node_that_nvsentinel_took_meanwhile_stays_cordoned_while_it_has_it(ground: Ground):
    """lifecycle R2: NVSentinel takes any uncordon as the cancel of its break-fix."""
    under_test(ground)
    completes(ground)
    its = {"quarantineHealthEvent": '[{"checkName":"GpuMemWatch"}]', "quarantineHealthEventCordonPreExisting": "True"}
    ground.patch_node(CANARY, {"metadata": {"annotations": its}})
    ground.rounds(3)
    assert is_cordoned(ground)
    assert row().trouble.startswith("NVSentinel quarantines or validates the node (quarantineHealthEvent)")

    ground.patch_node(CANARY, {"metadata": {"annotations": dict.fromkeys(its)}})
    ground.rounds(2)
    assert (is_cordoned(ground), row().trouble) == (False, "")


@pytest.mark.nightly
@pytest.mark.parametrize("gates", [{"test_job": {"cordon": False}}, {"test_job": {"advisory": True}}, {}])
def test_where_nobody_asks_for_it_nothing_is_cordoned(ground: Ground, gates: dict[str, Any]):
    released(ground, gates={"driver_version": {}, "failure_budget": {}} | gates)

    assert not is_cordoned(ground)
    assert marks(ground) == {}
    assert not Cordon.objects.exists()


def test_a_node_on_which_no_test_job_can_be_made_is_not_cordoned(ground: Ground):
    """It offers no GPU as a resource, as with DRA: cordoned, it would wait for a Job that never comes."""
    ground.armed(gates=GATES)
    none = {"status": {"allocatable": {"nvidia.com/gpu": None}}}
    ground.store.patch(NODE, CANARY, none, how="merge", subresource="status")

    ground.round()

    assert ground.releases() == [CANARY]
    assert not is_cordoned(ground)


def test_the_driver_manager_that_uncordons_is_undone(ground: Ground):
    """Z7: while the driver restarts no pod can have a GPU there, so that nobody is woken."""
    released(ground)
    goes(ground, "pod-restart-required")
    uncordon(ground)
    ground.round()

    assert is_cordoned(ground)
    assert PlanEvent.objects.filter(to="cordon-removed", reason__contains="driver restart,").exists()
    assert list(CORDON_TAKEN.say(ground.cluster, now=ground.clock())) == []


def test_a_person_who_uncordons_it_before_it_is_proven_is_undone_and_it_is_a_finding(ground: Ground):
    under_test(ground)
    uncordon(ground)
    ground.round()

    assert is_cordoned(ground)
    ((_, wrong),) = CORDON_TAKEN.say(ground.cluster, now=ground.clock())
    assert wrong.title == f"{CANARY} was uncordoned before its test Job completed"


@pytest.mark.nightly
def test_once_the_operator_is_through_its_note_is_not_written_again(ground: Ground):
    """It would leave the node cordoned after some later upgrade."""
    under_test(ground)
    is_done(ground)
    uncordon(ground)
    ground.rounds(2)

    assert marks(ground) == {CORDONED_BY: ground.plan.mark}


def test_what_is_called_back_takes_pods_again_in_the_same_patch(ground: Ground):
    released(ground)
    say(plan_control.halt, ground)
    ground.round()

    assert ground.target().state == TargetState.HELD
    assert CANARY in ground.held()
    assert not is_cordoned(ground)
    assert marks(ground) == {}
    (again,) = (one for one in ground.writes() if one["code"] == 200)
    assert {"op": "remove", "path": "/spec/unschedulable"} in again["body"]


@pytest.mark.nightly
def test_the_next_node_waits_for_the_proof_and_once_that_takes_too_long_a_person_is_asked(ground: Ground):
    """No wave of two untested nodes, and no silence: the budget is used up until it is proven."""
    ground.armed(gates=GATES, canaries=2)
    ground.round()
    (first,) = ground.releases()
    is_done(ground, first)
    ground.rounds(4)

    assert ground.releases() == []
    assert ground.stage().state == StageState.PROMOTING
    assert f"The test Job on {first} has not completed" in ground.plan.waiting_for
    assert Disruption.objects.in_force().filter(node_name=first).exists()

    ground.clock.move(hours=2)
    ground.rounds(2)
    assert ground.plan.commands.in_force().exists()
    assert "a person decides" in ground.plan.waiting_for


@pytest.mark.nightly
def test_tenants_are_waited_for_from_then_on_and_lose_no_wait_timeout_before(ground: Ground):
    under_test_with_tenants(ground)
    answer = GateAnswer.objects.get(stage=ground.stage(), gate="workloads_ready", is_current=True)
    assert (answer.answer, answer.cause) == ("wait", KEPT_EMPTY)

    completes(ground)
    ground.rounds(2)
    ground.look()
    Bookmark.objects.filter(cluster=ground.cluster, kind="daemonsets.apps").update(last_seen_at=answer.at)
    ground.round(look=False)  # another kind was not heard of since: pods may come all the same
    current = GateAnswer.objects.get(stage=ground.stage(), gate="workloads_ready", is_current=True)
    assert current.cause != KEPT_EMPTY


def under_test_with_tenants(ground: Ground) -> None:
    gates = {**GATES, "workloads_ready": {}}
    ground.armed(gates=gates)
    ground.round()
    is_done(ground)
    ground.rounds(5)
    assert len(jobs(ground)) == 1


def test_our_cordon_is_nobody_elses_change(ground: Ground):
    ground.armed(gates={**GATES, "no_foreign_change": {}})
    ground.round()
    is_done(ground)
    ground.rounds(5)

    answer = GateAnswer.objects.get(stage=ground.stage(), gate="no_foreign_change", is_current=True)
    assert answer.cause != "kept", answer.title
    completes(ground)
    ground.rounds(4)
    assert ground.stage().state == StageState.PASSED


@pytest.mark.nightly
def test_what_failed_its_test_stays_cordoned_when_the_plan_is_given_up_with_its_owner_named(ground: Ground):
    under_test(ground)
    fails(ground)
    ground.rounds(2)
    assert ground.plan.state == PlanState.HALTED
    pods_go(ground)
    say(plan_control.abort, ground)
    settle(ground)

    assert ground.plan.state == PlanState.ABORTED, ground.plan.waiting_for
    assert is_cordoned(ground)
    assert marks(ground)[CORDONED_BY] == ground.plan.mark
    assert f"{CANARY} stays cordoned by this plan: its test Job failed." in ground.plan.reason
    ((_, wrong),) = CORDON_LEFT.say(ground.cluster, now=ground.clock())
    assert f"kubectl uncordon {CANARY}" in " ".join(wrong.steps)


def settle(ground: Ground) -> None:
    """As the operator does with nodes that are queued and change no more."""
    for _ in range(12):
        for name in NODES:
            if name != CANARY and ground.labels(name).get("nvidia.com/gpu-driver-upgrade-state") != "upgrade-done":
                ground.set_state(name, "upgrade-done")
        ground.round()
        pods_go(ground)
        if ground.plan.is_final:
            break


@pytest.mark.nightly
def test_what_was_not_tested_takes_pods_when_the_plan_is_given_up(ground: Ground):
    under_test(ground)
    say(plan_control.abort, ground)
    settle(ground)

    assert ground.plan.state == PlanState.ABORTED, ground.plan.waiting_for
    assert not is_cordoned(ground)
    assert marks(ground) == {}


@pytest.mark.nightly
def test_one_that_the_operator_gave_up_on_is_the_operators_again(ground: Ground):
    """It has cordoned the node itself, and takes that away once somebody has mended it: no note of ours keeps it."""
    released(ground)
    ground.take_the_new_driver(CANARY)
    goes(ground, "cordon-required", "pod-restart-required", "upgrade-failed")
    ground.rounds(2)
    say(plan_control.abort, ground)
    settle(ground)

    assert ground.plan.state == PlanState.ABORTED, ground.plan.waiting_for
    assert is_cordoned(ground)
    assert marks(ground) == {}
    assert row().left_reason == "The node is still cordoned, by the operator, which has not finished its change."


@pytest.mark.nightly
def test_in_a_rollback_it_takes_no_pods_before_it_is_back(ground: Ground):
    """Not in the moment either in which no stage has it as its target."""
    under_test(ground)
    fails(ground)
    ground.rounds(2)
    pods_go(ground)
    say(plan_control.roll_back, ground)
    for _ in range(8):
        ground.round()
        assert is_cordoned(ground)
        assert marks(ground)[CORDONED_BY] == ground.plan.mark


@pytest.mark.nightly
def test_a_gate_that_is_overridden_lets_pods_in(ground: Ground):
    under_test(ground)
    break_glass.override_gate(
        ground.stage(), "test_job", actor=ground.ada, reason="It works: I have looked.", confirm=ground.plan.title,
        now=ground.clock(),
    )  # fmt: skip
    ground.rounds(2)

    assert not is_cordoned(ground)


@pytest.mark.nightly
def test_a_failed_node_that_is_taken_out_is_the_operators_again(ground: Ground):
    released(ground, canaries=2, gates={"driver_version": {}, "failure_budget": {"tolerate": 1}, "test_job": {}})
    goes(ground, "cordon-required", "pod-restart-required", "upgrade-failed")
    ground.round()
    plan_control.exclude(ground.target(), actor=ground.ada, reason="Not this one.", now=ground.clock())
    ground.rounds(2)

    assert marks(ground) == {}
    assert not Cordon.objects.in_force().filter(node_name=CANARY).exists()


@pytest.mark.nightly
def test_while_the_plan_is_halted_nothing_comes_to_what_changed(ground: Ground):
    under_test(ground)
    completes(ground)
    say(plan_control.halt, ground)
    ground.rounds(3)
    assert is_cordoned(ground)

    say(plan_control.resume, ground)
    ground.rounds(3)
    assert not is_cordoned(ground)


def test_a_node_that_somebody_cordons_in_between_stays_theirs(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    ground.armed(gates=GATES)
    release = waves._release

    def be_late(*given):
        ground.cordon(CANARY)
        release(*given)

    monkeypatch.setattr(waves, "_release", be_late)
    ground.act(WAVE)

    assert marks(ground) == {}
    assert row().left_reason == "Somebody else had cordoned it before."


def test_a_foreign_write_in_between_is_read_and_not_overwritten(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """The operator goes on between our read and our write: the patch tests what it saw, loses, and looks again."""
    under_test(ground)
    read, asked = client.get_node, []

    def read_and_be_late(*given):
        seen = read(*given)
        asked.append(seen)
        if len(asked) == 1:
            ground.set_state(CANARY, "pod-restart-required")
        return seen

    monkeypatch.setattr(client, "get_node", read_and_be_late)
    ground.act(Uncordon({ground.target().node_uid: CANARY}))

    assert len(asked) == 2
    assert is_cordoned(ground)  # it is at work again, and is waited for
    assert Cordon.objects.in_force().exists()


@pytest.mark.parametrize(("carry_out", "act"), [(cordons.cordon_again, CordonAgain), (cordons.uncordon, Uncordon)])
def test_whose_lease_is_over_writes_nothing(ground: Ground, carry_out, act):
    released(ground)
    old: Writer = ground.writer()
    uncordon(ground)
    ground.clock.move(minutes=1)
    ground.take_lease()
    ground.writes()

    with pytest.raises(LostRace):
        carry_out(old, act({ground.target().node_uid: CANARY}))

    assert [one for one in ground.writes() if "quarterdeck" in one["user_agent"]] == []
    assert Cordon.objects.in_force().exists()


def test_a_release_that_loses_cordons_nothing(ground: Ground):
    ground.armed(gates=GATES)
    writer = ground.writer()
    say(plan_control.pause, ground)

    with pytest.raises(LostRace):
        waves.release_wave(writer, WAVE)

    assert not Cordon.objects.exists()
    assert not is_cordoned(ground)


@pytest.mark.parametrize("is_after", nightly_but_first([True, False]), ids=["after the write", "before the write"])
@pytest.mark.parametrize("when", ["released", "uncordoned"])
def test_a_killed_worker_leaves_none_and_lets_nothing_in(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, when: str, *, is_after: bool
):
    if when == "released":
        ground.armed(gates=GATES)
    else:
        under_test(ground)
        completes(ground)
    patch_node = client.patch_node

    def die(connection, name, patch):
        if "unschedulable" not in str(patch):
            return patch_node(connection, name, patch)
        if is_after:
            patch_node(connection, name, patch)
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(client, "patch_node", die)
        with pytest.raises(KilledError):
            ground.rounds(4)
    ground.clock.move(minutes=1)
    ground.rounds(2)
    if when == "released":
        assert is_cordoned(ground)
        assert row().placed_at is not None
        is_done(ground)
        ground.rounds(5)
        completes(ground)
    ground.rounds(4)

    assert not is_cordoned(ground)
    assert marks(ground) == {}
    assert not Cordon.objects.in_force().filter(node_name=CANARY).exists()
    assert ground.stage().state == StageState.PASSED


@pytest.mark.nightly
def test_one_that_rows_do_not_know_is_found_before_the_plan_ends(ground: Ground):
    """Of a worker that was lost with its database, or a copy of one: nothing of it may outlive the plan."""
    under_test(ground)
    Cordon.objects.all().delete()
    say(plan_control.abort, ground)
    settle(ground)

    assert ground.plan.state == PlanState.ABORTED, ground.plan.waiting_for
    assert not is_cordoned(ground)
    assert marks(ground) == {}


@pytest.mark.nightly
def test_who_leaves_the_cluster_leaves_none(ground: Ground, capsys: pytest.CaptureFixture[str]):
    """Z33."""
    under_test(ground)
    call_command("release_all", "north", "--dry-run", "--give-up-plans", "We leave.")
    assert f"{CANARY}: cordoned by {ground.plan.mark} until its test Job has completed" in capsys.readouterr().out
    assert is_cordoned(ground)

    call_command("release_all", "north", "--give-up-plans", "We leave.")

    assert not is_cordoned(ground)
    assert marks(ground) == {}
    assert not Cordon.objects.in_force().exists()
    assert ground.store.list(JOB, NAMESPACE)[0] == []


def test_a_recall_in_the_moment_in_which_it_began_leaves_it_cordoned(ground: Ground):
    """It changes now, and is not proven: a label cannot stop it any more (hazard Z3)."""
    released(ground)
    ground.set_state(CANARY, "cordon-required")
    ground.act(Recall(0, (CANARY,)))

    assert is_cordoned(ground)
    assert CORDONED_BY in marks(ground)
    ground.rounds(3)
    assert is_cordoned(ground)


def test_cordons_cost_one_query_in_a_round(ground: Ground, django_assert_num_queries):
    released(ground, gates={"driver_version": {}, "failure_budget": {}})
    from rollouts.engine.cordons import read_cordons
    from rollouts.engine.test_jobs import PlanTestJobs

    with django_assert_num_queries(1):
        read_cordons(ground.plan, PlanTestJobs())


def test_what_changed_comes_from_the_rows_of_targets(ground: Ground):
    changed(ground)

    assert Target.objects.get(stage__plan=ground.plan, node_name=CANARY, stage__index=0).state == TargetState.CHANGED
    assert is_cordoned(ground)
