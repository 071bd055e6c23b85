import pytest
from django.core.management import CommandError, call_command

from fleet.models import Cluster
from kube import client
from rollouts.models import Hold, Plan
from rollouts.pulls.rounds import run_pull
from rollouts.steering.pulling import ask
from tests.make import a_cluster
from tests.rollouts.engine.ground import Ground

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
