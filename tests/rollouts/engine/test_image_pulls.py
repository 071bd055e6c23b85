"""Z36 against the API server: a plan's image is pulled by an operation, which ends with its purpose."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command

from operations.models import NodeTestJob, Operation
from operations.operation_round import run_operation
from operations.tasks import clean_up_operation, sweep_operations
from rollouts.commands.image_pulls import ask
from rollouts.live_checks.required_rights import needed, spared
from rollouts.models import Plan, PlanPull
from rollouts.queries.image_pulls import newest_pull
from rollouts.tasks import run_leased, sweep_rounds
from simulator.fleets.plan import Mode
from simulator.kinds import JOB
from simulator.run import Simulation
from tests.operations.test_image_pull_step import DONE, MISSING, shows
from tests.operations.test_rounds import rounds
from tests.operations.test_test_job_step import NAMESPACE, finished, jobs
from tests.rollouts.engine.ground import CANARY, NEW, Ground, a_ground
from tests.rollouts.live_checks.rights import asked_in, unnamed, unused

pytestmark = [pytest.mark.rounds, pytest.mark.django_db]


def pulling(ground: Ground, **given: Any) -> PlanPull:
    return ask(ground.draft(), actor=ground.ada, reason="Before the window.", now=ground.clock(), **given)


def images(ground: Ground) -> list[str]:
    return [job["spec"]["template"]["spec"]["containers"][0]["image"] for job in jobs(ground)]


def test_the_node_that_goes_first_pulls_the_operators_image_and_the_plan_shows_the_result(ground: Ground):
    pull = pulling(ground)
    operation = rounds(ground, pull.operation)
    (image,) = images(ground)
    shows(ground, DONE, "Succeeded")
    finished(ground, operation)

    shown = newest_pull(pull.plan)
    assert shown is not None
    (node,) = shown.nodes
    assert (node.node_name, node.image, node.outcome) == (CANARY, image, "pulled")
    assert image.startswith(f"nvcr.io/nvidia/driver:{NEW}-")
    assert shown.is_proven
    assert jobs(ground) == []


def test_where_the_policy_runs_the_driver_the_image_is_told_by_its_daemonset(
    db: None, start: Callable[..., Simulation]
):
    simulation = start()
    made = a_ground(simulation, Mode.CLUSTER_POLICY)
    pull = pulling(made)
    rounds(made, pull.operation)

    shown = newest_pull(pull.plan)
    assert shown is not None
    assert images(made) == [node.image for node in shown.nodes]
    assert all(f"/driver:{NEW}-" in image for image in images(made))
    made.connection.close()
    simulation.stop()


def test_a_live_check_asks_for_every_right_that_a_pull_uses(ground: Ground):
    """What only a pull uses is named as such: without it no more than that is refused."""
    pull = pulling(ground)
    used = asked_in(ground, lambda: rounds(ground, pull.operation))
    shows(ground, MISSING)
    used |= asked_in(ground, lambda: rounds(ground, pull.operation, 2))

    plan = Plan.objects.select_related("cluster").get(pk=pull.plan_id)
    rights = [*needed(plan, [NAMESPACE], with_slices=False), *spared([NAMESPACE])]
    assert unnamed(used, rights) == set()
    assert unused(used, spared([NAMESPACE])) == []


@pytest.mark.parametrize("columns", [{"state": "discarded"}, {"to_version": "580.105.08"}])
def test_without_a_purpose_its_jobs_go_whichever_worker_is_left(ground: Ground, columns: dict[str, str]):
    """Nobody but the sweeps knows of it: whoever edited or discarded the draft may have died just after."""
    pull = pulling(ground)
    rounds(ground, pull.operation)
    assert len(jobs(ground)) == 1
    Plan.objects.filter(pk=pull.plan_id).update(**columns)

    sweep_rounds()
    run_operation(pull.operation_id, owner="worker-2", clock=ground.clock)
    sweep_operations()
    clean_up_operation(key=pull.operation_id)

    assert Operation.objects.get(pk=pull.operation_id).state == "cancelled"
    assert jobs(ground) == []


def test_release_all_names_its_job_and_operation_and_ends_both(ground: Ground, capsys: pytest.CaptureFixture[str]):
    pull = pulling(ground)
    rounds(ground, pull.operation)
    mark, name = pull.operation.mark, NodeTestJob.objects.get().job_name

    call_command("release_all", "north", "--dry-run")
    said, there = capsys.readouterr().out, jobs(ground)
    call_command("release_all", "north")

    assert f"Job {NAMESPACE}/{name}: runs for {mark}; would be deleted" in said
    assert f"{mark} (Pull image on 1 node) would be cancelled" in said
    assert len(there) == 1
    assert ground.store.list(JOB)[0] == []
    assert Operation.objects.get().state_reason == "Cancel by release_all: Quarterdeck leaves this cluster."
    assert not NodeTestJob.objects.in_the_cluster().exists()


def test_a_round_that_only_the_version_before_has_is_left_to_it():
    """During an upgrade its sweep queues rounds of rows that this version has not."""
    run_leased(model="ImagePull", key=1)
