from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command

from edges.moves import LostRace
from fleet.models import Cluster
from kube import client
from rollouts.engine.act.holds import hold_node
from rollouts.engine.takeover import Mark, remove
from rollouts.management.commands import release_all
from rollouts.models import Hold, Plan
from rollouts.pulls.rounds import run_pull
from rollouts.steering.pulling import ask
from tests.make import a_cluster
from tests.rollouts.engine.ground import CANARY, HELD_BY, UPGRADE_SKIP, Ground

pytestmark = [pytest.mark.rounds, pytest.mark.django_db]


def test_another_cluster_at_the_address_is_left_alone_while_the_plans_end(ground: Ground, capsys):
    """Z10: the marks over there may be another Quarterdeck's."""
    plan = ground.start()
    ground.round()
    Cluster.objects.update(uid="of-the-cluster-that-was")
    ground.writes()

    call_command("release_all", "north", "--give-up-plans", "It was rebuilt.")

    assert "another cluster answers there" in capsys.readouterr().out
    assert ground.writes() == []
    assert Plan.objects.get(pk=plan.pk).state == "aborted"


def test_what_it_released_is_not_called_held_any_more(ground: Ground):
    ground.start()
    ground.rounds(2)

    call_command("release_all", "north", "--give-up-plans", "We leave.")

    assert not Hold.objects.in_the_way().exists()
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
    pull = ask(plan, actor=ground.ada, because="Before the window.", now=ground.clock())
    run_pull(pull_id=pull.pk, owner="worker-1", clock=ground.clock)
    forbid(monkeypatch, "delete_job")

    with pytest.raises(CommandError, match=r"1 Job of ours is still there. Run it again, or: kubectl delete jobs -A"):
        call_command("release_all", "north", "--give-up-plans", "We leave.")

    assert "3 of 3 nodes released" in capsys.readouterr().out
    assert not Hold.objects.in_the_way().exists()


def test_nodes_are_released_where_jobs_may_not_be_listed(ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys):
    ground.start()
    ground.rounds(2)
    forbid(monkeypatch, "list_jobs")

    call_command("release_all", "north", "--dry-run")
    shown = capsys.readouterr().out
    with pytest.raises(CommandError, match="Jobs of ours could not be listed"):
        call_command("release_all", "north", "--give-up-plans", "We leave.")

    assert "Jobs of ours could not be listed: jobs.batch is forbidden" in shown
    assert "3 nodes carry a mark of ours" in shown
    assert not Hold.objects.in_the_way().exists()


def test_one_cluster_that_does_not_answer_keeps_no_other_one_held(ground: Ground):
    ground.start()
    ground.rounds(2)
    a_cluster("away", kubeconfig="/nowhere")

    with pytest.raises(CommandError, match="away: "):
        call_command("release_all", "--give-up-plans", "We leave.")

    assert not Hold.objects.in_the_way().exists()


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
