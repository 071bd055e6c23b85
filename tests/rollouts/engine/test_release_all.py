from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command

from edges.transition_errors import LostRace
from fleet.models import Cluster
from gpu.labels import CORDONED_BY, EXCLUDED_BY, PUT_BACK, SENTINEL_MANAGED, UPGRADE_STATE, WAS_CORDONED
from gpu.upgrade_controller import UPGRADE_DONE, UPGRADE_FAILED, UPGRADE_REQUIRED
from kube import client
from kube.client.decoder import Unread
from operations.models import WriterLease
from operations.operation_round import run_operation
from rollouts.commands import fleet_freezes
from rollouts.commands.image_pulls import ask
from rollouts.engine import cluster_cleanup
from rollouts.engine.act.holds import hold_node
from rollouts.engine.cluster_cleanup import Mark, remove
from rollouts.management.commands import release_all
from rollouts.models import Hold, Plan
from simulator.kinds import CONFIG_MAP, JOB, LEASE, NODE
from tests.make import NOON, a_cluster
from tests.rollouts.engine.ground import CANARY, HELD_BY, NEW, NODES, OLD, UPGRADE_SKIP, Ground
from tests.variants import nightly_but_first
from wording.instants import to_the_second

pytestmark = [pytest.mark.rounds, pytest.mark.django_db]


def test_another_cluster_at_the_address_is_left_alone_while_the_plans_end(ground: Ground):
    """Z10: the marks over there may be another Quarterdeck's."""
    plan = ground.start()
    ground.round()
    Cluster.objects.update(uid="of-the-cluster-that-was")
    ground.writes()

    with pytest.raises(CommandError, match="north: another cluster answers there"):
        call_command("release_all", "north", "--give-up-plans", "It was rebuilt.")

    assert ground.writes() == []
    assert Plan.objects.get(pk=plan.pk).state == "aborted"


def test_a_plan_in_progress_is_not_given_up_without_a_reason(ground: Ground):
    """Z33: it would hold the nodes again."""
    plan = ground.start()
    ground.rounds(2)
    ground.writes()

    with pytest.raises(CommandError, match=rf"{plan.mark}\) in progress would hold the nodes again"):
        call_command("release_all", "north")

    assert ground.writes() == []
    assert ground.held() == set(NODES)
    assert Plan.objects.get(pk=plan.pk).is_under_way


def test_what_it_released_is_not_called_held_any_more(ground: Ground, monkeypatch):
    monkeypatch.setattr("rollouts.management.commands.release_all.slowest_warm_up", lambda *_, **__: 300.0)
    ground.start()
    ground.rounds(2)

    call_command("release_all", "north", "--give-up-plans", "We leave.")

    assert Plan.objects.get(pk=ground.plan.pk).warm_up_s == 300, "measured at its end: the pods go"
    assert not Hold.objects.blocking_changes().exists()
    assert {stage.state for stage in ground.plan.stages.forward()} == {"abandoned"}


def test_a_rollback_that_had_begun_ends_with_its_plan(ground: Ground):
    plan = ground.start()
    Plan.objects.filter(pk=plan.pk).update(state="rolling-back")
    plan.stages.filter(kind="rollback").update(state="promoting")

    call_command("release_all", "north", "--give-up-plans", "We leave.")

    assert plan.stages.get(kind="rollback").state == "abandoned"


def forbid(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise client.Forbidden('jobs.batch is forbidden: User "x" may not.')

    monkeypatch.setattr(client, call, refuse)


def test_nodes_are_released_where_a_job_may_not_be_deleted(ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys):
    plan = ground.start()
    ground.rounds(2)
    pull = ask(plan, actor=ground.ada, reason="Before the window.", now=ground.clock())
    run_operation(pull.operation_id, owner="worker-1", clock=ground.clock)
    forbid(monkeypatch, "delete_job")

    with pytest.raises(
        CommandError, match=r"1 Job of Quarterdeck still exists. Run this again, or: kubectl delete jobs -A"
    ):
        call_command("release_all", "north", "--give-up-plans", "We leave.")

    assert "3 of 3 nodes released" in capsys.readouterr().out
    assert not Hold.objects.blocking_changes().exists()


def test_nodes_are_released_where_jobs_may_not_be_listed(ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys):
    ground.start()
    ground.rounds(2)
    forbid(monkeypatch, "list_jobs")

    with pytest.raises(CommandError, match=r"Quarterdeck's Jobs could not be listed: jobs\.batch is forbidden"):
        call_command("release_all", "north", "--dry-run")
    shown = capsys.readouterr().out
    with pytest.raises(CommandError, match="Quarterdeck's Jobs could not be listed"):
        call_command("release_all", "north", "--give-up-plans", "We leave.")

    assert "3 nodes carry a mark of Quarterdeck" in shown
    assert not Hold.objects.blocking_changes().exists()


def test_one_cluster_that_does_not_answer_keeps_no_other_one_held(ground: Ground):
    ground.start()
    ground.rounds(2)
    a_cluster("away", kubeconfig="/nowhere")

    with pytest.raises(CommandError, match="away: "):
        call_command("release_all", "--give-up-plans", "We leave.")

    assert not Hold.objects.blocking_changes().exists()


def held_anew(ground: Ground, name: str) -> None:
    marks = {"labels": {UPGRADE_SKIP: "true"}, "annotations": {HELD_BY: ground.plan.mark}}
    ground.patch_node(name, {"metadata": marks})


def freed_by_hand(ground: Ground, name: str) -> None:
    marks = {"labels": {UPGRADE_SKIP: None}, "annotations": {HELD_BY: None}}
    ground.patch_node(name, {"metadata": marks})


def test_a_round_in_its_middle_holds_no_node_any_more(ground: Ground):
    ground.start()
    writer = ground.writer()

    call_command("release_all", "north", "--give-up-plans", "We leave.")

    with pytest.raises(LostRace):
        hold_node(writer, ground.node(CANARY)["metadata"]["uid"], CANARY)
    assert ground.held() == set()


def test_a_label_that_lands_meanwhile_is_taken_off_too(ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys):
    ground.start()
    ground.rounds(2)
    freed_by_hand(ground, CANARY)

    def as_one_lands(connection: client.Connection, found: list[Mark]) -> Iterator[tuple[Mark, str]]:
        monkeypatch.setattr(release_all, "remove", remove)
        held_anew(ground, CANARY)
        return remove(connection, found)

    monkeypatch.setattr(release_all, "remove", as_one_lands)

    call_command("release_all", "north", "--give-up-plans", "We leave.")

    assert "3 of 3 nodes released" in capsys.readouterr().out
    assert ground.held() == set()


def test_what_is_held_anew_each_time_is_said(ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys):
    """Another Quarterdeck, or a worker that was not asked: what is said is what is there."""
    ground.start()
    ground.rounds(2)

    def as_somebody_holds(connection: client.Connection, found: list[Mark]) -> Iterator[tuple[Mark, str]]:
        yield from remove(connection, found)
        held_anew(ground, CANARY)

    monkeypatch.setattr(release_all, "remove", as_somebody_holds)

    with pytest.raises(CommandError, match=r"1 node still carries a mark after 5 rounds\. Run it again\."):
        call_command("release_all", "north", "--give-up-plans", "We leave.")

    assert "2 of 3 nodes released" in capsys.readouterr().out


def test_a_node_that_cannot_be_written_is_said_and_not_tried_for_ever(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys
):
    ground.start()
    ground.rounds(2)
    forbid(monkeypatch, "patch_node")

    with pytest.raises(CommandError, match=r"3 nodes still carry a mark after 1 round\. Run it again\."):
        call_command("release_all", "north", "--give-up-plans", "We leave.")

    assert capsys.readouterr().out.count(f"north {CANARY}: jobs.batch is forbidden") == 1


def held(ground: Ground) -> Plan:
    """Of a plan in the middle of its canary: every node is held, the version is written, an image is pulled."""
    plan = ground.start()
    ground.rounds(2)
    pull = ask(plan, actor=ground.ada, reason="Before the window.", now=ground.clock())
    run_operation(pull.operation_id, owner="worker-1", clock=ground.clock)
    ground.writes()
    return plan


def marked(ground: Ground) -> set[str]:
    """Whatever of ours `kubectl get nodes,jobs,leases -A -o yaml` would show."""
    listed = [one for kind in (NODE, JOB, LEASE) for one in ground.store.list(kind)[0]]
    return {one["metadata"]["name"] for one in listed if "quarterdeck" in str(one["metadata"])}


def leave(*more: str) -> None:
    call_command("release_all", "north", "--give-up-plans", "We leave.", *more)


def asked(ground: Ground) -> list[tuple[str, str]]:
    client.server_version(ground.connection)  # an answer is logged once it is sent
    return [(one["method"], one["path"]) for one in ground.simulation.log.since(ground.read_until)]


def test_a_dry_run_names_each_thing_that_the_run_after_it_does(ground: Ground, capsys: pytest.CaptureFixture[str]):
    """Z33."""
    plan = held(ground)
    pull = plan.image_pulls.get().operation
    ((job,), _, _) = ground.store.list(JOB)

    leave("--dry-run")
    named = capsys.readouterr().out.splitlines()
    before = marked(ground)
    leave()
    done = capsys.readouterr().out.splitlines()

    held_by = f"held by {plan.mark} since"
    assert before == {*NODES, job["metadata"]["name"], "quarterdeck"}
    assert [line.split(": ")[0] for line in named if held_by in line] == [f"north {name}" for name in NODES]
    assert all(
        line.endswith(f"{UPGRADE_SKIP} and its annotations would be removed") for line in named if held_by in line
    )
    assert f"north Job gpu-operator/{job['metadata']['name']}: runs for {pull.mark}; would be deleted" in named
    assert "north Lease quarterdeck/quarterdeck: would be deleted" in named
    assert any(f"{pull.mark} (Pull image on 1 node) would be cancelled" in line for line in named)
    assert any(line.endswith("It would be ended.") for line in named)
    assert named[-1] == "north: 3 nodes carry a mark of Quarterdeck. Nothing was changed."
    assert done[-1] == "north: no objects of Quarterdeck are left."
    assert marked(ground) == set()


@pytest.mark.parametrize(("version", "is_armed"), [(NEW, True), (OLD, False)])
def test_whether_nodes_will_change_is_asked_of_the_object(
    ground: Ground, capsys: pytest.CaptureFixture[str], version: str, *, is_armed: bool
):
    """Its rows are as old as its last round: somebody may have put the old version back since."""
    ground.armed()
    ground.write_version(version)

    leave("--dry-run")

    assert (f"the cluster requests {NEW}: released nodes will change" in capsys.readouterr().out) is is_armed


def test_a_dry_run_writes_nothing(ground: Ground):
    held(ground)

    leave("--dry-run")

    assert {method for method, _ in asked(ground)} == {"GET"}
    assert ground.plan.is_under_way


def test_that_nothing_is_left_rests_on_what_was_read_after_the_last_write(
    ground: Ground, capsys: pytest.CaptureFixture[str]
):
    """Z25, Z33."""
    held(ground)

    leave()

    every = asked(ground)
    last = max(number for number, (method, _) in enumerate(every) if method != "GET")
    assert every[last] == ("DELETE", "/apis/coordination.k8s.io/v1/namespaces/quarterdeck/leases/quarterdeck")
    read = {path for _, path in every[last:]}
    assert read >= {"/api/v1/nodes", "/apis/batch/v1/jobs", "/api/v1/pods"}
    assert ("GET", every[last][1]) in every[last:]
    assert "no objects of Quarterdeck are left" in capsys.readouterr().out


@pytest.mark.nightly
def test_what_lands_after_all_was_taken_off_is_said(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    held(ground)
    delete = client.delete_lease

    def as_one_lands(*given) -> None:
        delete(*given)
        held_anew(ground, CANARY)

    monkeypatch.setattr(client, "delete_lease", as_one_lands)

    with pytest.raises(CommandError, match=r"1 node still carries a mark after 1 round\."):
        leave()

    assert "no objects of Quarterdeck are left" not in capsys.readouterr().out


@pytest.mark.nightly
def test_a_pod_that_has_not_ended_yet_is_waited_for(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    held(ground)
    pods = cluster_cleanup.pods
    looks = iter([["it ends"], ["it ends"]])
    slept: list[float] = []
    monkeypatch.setattr(cluster_cleanup, "pods", lambda connection: next(looks, None) or pods(connection))
    monkeypatch.setattr(release_all.time, "sleep", slept.append)

    leave()

    assert slept == [1, 1]
    assert "no objects of Quarterdeck are left" in capsys.readouterr().out


def test_a_pod_that_does_not_end_is_said(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    held(ground)
    monkeypatch.setattr(cluster_cleanup, "pods", lambda _: ["it stays"])
    monkeypatch.setattr(release_all.time, "sleep", lambda _: None)

    with pytest.raises(CommandError, match="1 pod of Quarterdeck's Jobs still exists"):
        leave()


def test_a_lease_that_may_not_be_deleted_is_said_and_no_node_stays_held(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
):
    """Rights that were given before this one was asked for."""
    held(ground)
    forbid(monkeypatch, "delete_lease")

    with pytest.raises(CommandError, match=r"is forbidden.*kubectl -n quarterdeck delete lease quarterdeck"):
        leave()

    assert marked(ground) == {"quarterdeck"}


def test_where_another_quarterdeck_has_written_last_nothing_is_touched(ground: Ground):
    """Z10: what carries a plan's name there may be that one's, however long it has been silent."""
    plan = held(ground)
    WriterLease.objects.update(instance="of-another-database")
    before = marked(ground)

    with pytest.raises(CommandError, match="its Lease names another Quarterdeck"):
        leave()
    with pytest.raises(CommandError, match="its Lease names another Quarterdeck"):
        leave("--dry-run")

    assert marked(ground) == before
    assert {method for method, _ in asked(ground)} == {"GET"}
    assert Plan.objects.get(pk=plan.pk).is_under_way


def test_while_the_stop_is_in_force_plans_end_and_no_node_is_released(ground: Ground):
    """Z33: deleting it then lets nothing go that this has not."""
    plan = held(ground)
    ground.stop_everything("incident 4711")

    with pytest.raises(CommandError, match=r"stops everything: incident 4711\. No node is released until it is gone"):
        leave()
    at_first = ground.held(), Plan.objects.get(pk=plan.pk).state, ground.store.list(JOB)[0]
    ground.store.delete(CONFIG_MAP, "quarterdeck-stop", "quarterdeck")
    leave()

    assert at_first == (set(NODES), "aborted", [])
    assert marked(ground) == set()


def test_the_stop_of_the_fleet_binds_it_too(ground: Ground):
    held(ground)
    fleet_freezes.stop(actor="ada", reason="An incident.", now=NOON)

    with pytest.raises(CommandError, match="No node is released until the stop is lifted"):
        leave()

    assert ground.held() == set(NODES)


def test_a_stop_in_its_middle_lets_no_further_node_go(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    held(ground)

    def as_somebody_stops(connection: client.Connection, found: list[Mark]) -> Iterator[tuple[Mark, str]]:
        for number, each in enumerate(remove(connection, found)):
            if not number:
                ground.stop_everything("incident 4711")
            yield each

    monkeypatch.setattr(release_all, "remove", as_somebody_stops)

    with pytest.raises(CommandError, match="stops everything"):
        leave()

    assert ground.held() == set(NODES[1:])


@pytest.mark.parametrize("value", ["false", "paused-by-carol"])
def test_a_hold_that_somebody_made_another_value_of_stays(ground: Ground, value: str):
    held(ground)
    ground.label(CANARY, **{UPGRADE_SKIP: value})

    leave()

    assert ground.labels(CANARY)[UPGRADE_SKIP] == value
    assert marked(ground) == set()


def test_a_hold_that_names_no_plan_stays(ground: Ground):
    held(ground)
    ground.patch_node(CANARY, {"metadata": {"annotations": {HELD_BY: "carol"}}})

    leave()

    assert ground.held() == {CANARY}
    assert ground.node(CANARY)["metadata"]["annotations"][HELD_BY] == "carol"


def test_what_was_before_an_exclusion_and_cannot_be_read_is_said_and_left(
    ground: Ground, capsys: pytest.CaptureFixture[str]
):
    held(ground)
    ground.label(CANARY, **{SENTINEL_MANAGED: "false"})
    annotations = {EXCLUDED_BY: ground.plan.mark, PUT_BACK: "{"}
    ground.patch_node(CANARY, {"metadata": {"annotations": annotations}})

    with pytest.raises(CommandError, match="1 node still carries a mark"):
        leave()

    assert f"{PUT_BACK} does not contain the value before {SENTINEL_MANAGED}=false" in capsys.readouterr().out
    assert ground.labels(CANARY)[SENTINEL_MANAGED] == "false"
    assert ground.held() == {CANARY}


@pytest.mark.nightly
def test_a_node_that_cannot_be_read_is_named_and_nothing_is_said_to_be_left_clean(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Unseen is never clean."""
    held(ground)
    of_all = client.list_nodes_and_unread
    odd = Unread.of("of-odd", "odd", "labels")
    monkeypatch.setattr(client, "list_nodes_and_unread", lambda connection: (of_all(connection)[0], [odd]))

    with pytest.raises(CommandError, match=r"1 node \(odd\) cannot be read\. It is unknown whether it carries a mark"):
        leave()

    assert "no objects of Quarterdeck are left" not in capsys.readouterr().out
    assert ground.held() == set()


def test_what_changes_while_it_is_written_is_tried_again(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    held(ground)
    patch_node = client.patch_node
    first = iter([client.Conflict("It changed."), client.TooManyRequests("Later.", retry_after_s=7.0)])
    slept: list[float] = []

    def as_others_write(*given):
        if trouble := next(first, None):
            raise trouble
        return patch_node(*given)

    monkeypatch.setattr(client, "patch_node", as_others_write)
    monkeypatch.setattr(cluster_cleanup.time, "sleep", slept.append)

    leave()

    assert slept == [7.0]
    assert marked(ground) == set()


@pytest.mark.nightly
def test_a_node_that_went_meanwhile_is_nothing_that_could_not_be_done(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    held(ground)

    def as_one_goes(connection: client.Connection, found: list[Mark]) -> Iterator[tuple[Mark, str]]:
        ground.delete(CANARY)
        return remove(connection, found)

    monkeypatch.setattr(release_all, "remove", as_one_goes)

    leave()

    assert marked(ground) == set()


def test_a_node_leaves_the_operators_queue_in_the_write_that_lets_it_go(
    ground: Ground, capsys: pytest.CaptureFixture[str]
):
    """Seen on the real one: left in it, each whose driver is the wanted one again was emptied for nothing (n 2.8)."""
    held(ground)
    ground.set_state(CANARY, UPGRADE_REQUIRED)
    ground.writes()

    leave("--dry-run")
    said = capsys.readouterr().out
    leave()

    assert f"{UPGRADE_STATE}, {UPGRADE_SKIP} and its annotations would be removed" in said
    assert said.count(UPGRADE_STATE) == 1
    assert not {UPGRADE_STATE, UPGRADE_SKIP} & ground.labels(CANARY).keys()
    assert len([one for one in ground.writes() if one["path"].endswith(f"/nodes/{CANARY}")]) == 1


@pytest.mark.parametrize("state", nightly_but_first([UPGRADE_DONE, UPGRADE_FAILED, "pod-restart-required"]))
def test_any_other_state_is_the_operators(ground: Ground, state: str):
    held(ground)
    ground.set_state(CANARY, state)

    leave()

    assert ground.labels(CANARY)[UPGRADE_STATE] == state
    assert marked(ground) == set()


def test_who_was_cordoned_before_its_turn_stays_so_and_leaves_no_note_behind(ground: Ground):
    """The operator reads its note again at the end of whichever upgrade comes next, and would leave that cordoned."""
    held(ground)
    ground.set_state(CANARY, UPGRADE_REQUIRED)
    ground.patch_node(CANARY, {"metadata": {"annotations": {WAS_CORDONED: "true"}}, "spec": {"unschedulable": True}})

    leave()

    left = ground.node(CANARY)
    assert UPGRADE_STATE not in left["metadata"]["labels"]
    assert WAS_CORDONED not in left["metadata"]["annotations"]
    assert left["spec"]["unschedulable"]


def test_a_cordon_of_a_node_that_nvsentinel_has_keeps_its_note_until_a_run_may_remove_both(
    ground: Ground, capsys: pytest.CaptureFixture[str]
):
    """lifecycle R2, R4: an uncordon cancels NVSentinel's break-fix, and it never removes a cordon from before."""
    held(ground)
    its = {"quarantineHealthEvent": '[{"checkName":"GpuMemWatch"}]', "quarantineHealthEventCordonPreExisting": "True"}
    marks = {"annotations": its | {CORDONED_BY: ground.plan.mark}}
    ground.patch_node(CANARY, {"metadata": marks, "spec": {"unschedulable": True}})

    call_command("release_all", "north", "--dry-run", "--give-up-plans", "We leave.")
    assert f"{CANARY}: its marks would stay: NVSentinel quarantines" in capsys.readouterr().out
    with pytest.raises(CommandError, match="1 node still carries a mark"):
        leave()
    assert f"{CANARY}: NVSentinel quarantines or validates the node (quarantineHealthEvent)." in capsys.readouterr().out
    left = ground.node(CANARY)
    assert left["spec"]["unschedulable"]
    assert left["metadata"]["annotations"][CORDONED_BY] == ground.plan.mark

    ground.patch_node(CANARY, {"metadata": {"annotations": dict.fromkeys(its)}})
    leave()
    assert (marked(ground), ground.node(CANARY)["spec"].get("unschedulable", False)) == (set(), False)


def test_a_cordon_that_may_be_the_operators_own_keeps_its_node_in_the_queue(ground: Ground):
    """Of a try that failed: only at the end of the next one does it uncordon."""
    held(ground)
    ground.set_state(CANARY, UPGRADE_REQUIRED)
    ground.cordon(CANARY)

    leave()

    assert ground.labels(CANARY)[UPGRADE_STATE] == UPGRADE_REQUIRED
    assert marked(ground) == set()


# Somebody else's version (hazard Z38)


def changed_by_somebody(ground: Ground) -> Plan:
    plan = ground.start()
    ground.round()
    ground.write_version("590.44.1")
    ground.round()
    return plan


def test_nodes_that_would_go_to_a_version_of_somebody_else_stay_held(ground: Ground):
    plan = changed_by_somebody(ground)
    says = f"NVIDIADriver h100 requests 590.44.1, which is not a version of {plan.mark}."

    for dry_run in (["--dry-run"], []):
        with pytest.raises(CommandError, match=says):
            leave(*dry_run)

    assert ground.held() == set(NODES)
    assert Plan.objects.get(pk=plan.pk).is_under_way


def test_nor_to_a_template_of_somebody_else(ground: Ground):
    ground.start()
    ground.round()
    ground.change_driver(env=[{"name": "A", "value": "b"}])

    with pytest.raises(CommandError, match="was changed by somebody else since"):
        leave()

    assert ground.held() == set(NODES)


@pytest.mark.nightly
def test_with_the_flag_they_go(ground: Ground):
    changed_by_somebody(ground)

    leave("--to-another-version")

    assert ground.held() == set()


@pytest.mark.parametrize("flags", [[], ["--to-another-version"]])
def test_and_not_under_a_freeze(ground: Ground, flags: list[str]):
    if flags:
        changed_by_somebody(ground)
    else:
        ground.armed()
    where = fleet_freezes.Where(ground.cluster)
    fleet_freezes.freeze(where, actor="bea", reason="Quarter end.", now=ground.clock())

    with pytest.raises(CommandError, match="Cluster north is frozen by bea: Quarter end"):
        leave(*flags)

    assert ground.held() == set(NODES)


def test_what_nothing_changes_is_released_under_a_freeze(ground: Ground):
    ground.start()
    ground.round()
    fleet_freezes.freeze(fleet_freezes.Where(ground.cluster), actor="bea", reason="Quarter end.", now=ground.clock())

    leave()

    assert ground.held() == set()


def test_a_plan_that_it_ended_waits_for_nothing_and_says_what_is_left(ground: Ground):
    """Z42."""
    plan = ground.start()
    ground.rounds(2)
    ground.cordon(CANARY)
    assert ground.plan.waiting_for

    leave()

    plan.refresh_from_db()
    assert plan.waiting_for == ""
    event = plan.events.get(to="released")
    assert event.reason == f"As of {to_the_second(event.at)}: {CANARY} is cordoned: kubectl uncordon {CANARY}."
    assert plan.reason == f"We leave. {event.reason}"
