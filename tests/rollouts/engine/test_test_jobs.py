"""Z8, Z27: a test Job on each changed node, before anything rests on it; none is doubled, and none is left."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command

from edges.transition_errors import LostRace
from fleet.models import Node
from kube import client
from operations.models import NodeTestJob
from rollouts.commands import plan_control
from rollouts.engine.act import test_jobs
from rollouts.engine.decide.acts import CreateTestJobs
from rollouts.engine.decide.test_jobs import AGAIN_AFTER
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.live_checks.questions import Questions, facts_of
from rollouts.live_checks.required_rights import needed
from rollouts.models import GateAnswer, Plan, PlanEvent, Target, TestJob
from simulator.kinds import JOB, POD
from tests.make import a_node, a_pool, an_operation
from tests.rollouts.engine.ground import CANARY, NEW, Ground
from tests.rollouts.live_checks.rights import asked_in, unnamed

pytestmark = pytest.mark.rounds

NAMESPACE = "gpu-operator"
GATES = {"driver_version": {}, "failure_budget": {}, "test_job": {}}
BANDWIDTH = "average_bus_bandwidth.bandwidth"
WORDS = "CUDA error: no kernel image is available"


class KilledError(BaseException):
    """The process is gone: nothing after this line ran."""


def changed(ground: Ground, **options: Any) -> Ground:
    """Its canary was let go, and the operator says that it is done."""
    ground.armed(gates={**GATES, "test_job": options})
    return changes(ground)


def changes(ground: Ground) -> Ground:
    ground.round()
    assert ground.releases() == [CANARY]
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(3)
    assert ground.target().state == TargetState.CHANGED
    return ground


def under_test(ground: Ground, **options: Any) -> Ground:
    changed(ground, **options)
    ground.round()
    assert len(jobs(ground)) == 1
    return ground


def jobs(ground: Ground) -> list[dict[str, Any]]:
    return ground.store.list(JOB, NAMESPACE)[0]


def row() -> TestJob:
    return TestJob.objects.latest("pk")


def answer(ground: Ground) -> GateAnswer:
    return ground.stage().answers.get(gate="test_job", is_current=True)


def play(ground: Ground, state: dict[str, Any], phase: str = "Running", *, node: str | None = None) -> None:
    """As controller and kubelet would."""
    (job,) = jobs(ground)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
    template = job["spec"]["template"]
    metadata = {"name": f"{owner['name']}-x", **template["metadata"], "ownerReferences": [owner | {"controller": True}]}
    if not ground.store.list(POD, NAMESPACE, label_selector="quarterdeck.io/proof")[0]:
        spec = template["spec"] | ({"nodeName": node} if node else {})
        ground.store.create(POD, {"metadata": metadata, "spec": spec}, NAMESPACE)
    status = {"name": "test-job", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    seen = {"status": {"phase": phase, "startTime": "2026-01-08T12:00:01Z", "containerStatuses": [status]}}
    ground.store.patch(POD, metadata["name"], seen, NAMESPACE, how="merge", subresource="status")


def fails(ground: Ground) -> None:
    play(ground, {"terminated": {"exitCode": 1, "reason": "Error", "message": WORDS}}, "Failed")


def completes(ground: Ground) -> None:
    (job,) = jobs(ground)
    done = {"type": "Complete", "status": "True", "reason": "CompletionsReached"}
    status = {"conditions": [done], "succeeded": 1}
    ground.store.patch(JOB, job["metadata"]["name"], {"status": status}, NAMESPACE, how="merge", subresource="status")


def pods_go(ground: Ground) -> None:
    for pod in ground.store.list(POD, NAMESPACE, label_selector="quarterdeck.io/proof")[0]:
        ground.store.delete(POD, pod["metadata"]["name"], NAMESPACE, grace_s=0)


def test_it_is_made_once_the_operator_is_through_and_asks_for_a_gpu_on_that_node(ground: Ground):
    ground.armed(gates=GATES)
    ground.rounds(2)
    assert jobs(ground) == []

    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(4)

    (job,) = jobs(ground)
    pod = job["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert CANARY in str(pod["affinity"])
    assert pod["tolerations"] == [{"operator": "Exists", "effect": "NoSchedule"}]
    assert (job["spec"]["activeDeadlineSeconds"], job["spec"]["ttlSecondsAfterFinished"]) == (900, 600)
    assert job["metadata"]["labels"]["quarterdeck.io/proves-for"] == ground.plan.mark
    assert "vectoradd" in row().image


@pytest.mark.nightly
def test_a_stage_may_name_another_image_and_more_gpus(ground: Ground):
    under_test(ground, image="registry.example/burn:1", gpus=4)

    (job,) = jobs(ground)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["resources"]["limits"]["nvidia.com/gpu"]) == ("registry.example/burn:1", "4")


def test_the_stage_waits_for_it_and_passes_once_it_has_completed(ground: Ground):
    under_test(ground)
    play(ground, {"running": {"startedAt": "2026-01-08T12:00:09Z"}})
    ground.rounds(3)
    assert (answer(ground).answer, answer(ground).cause) == ("wait", "not-through")
    assert ground.plan.waiting_for == f"Canary: The test Job on {CANARY} has not completed. It runs."
    assert ground.stage().state == StageState.SOAKING

    completes(ground)
    ground.rounds(3)

    assert answer(ground).answer == "pass"
    assert ground.stage().state == StageState.PASSED
    assert jobs(ground) == []
    pods_go(ground)
    ground.round()
    assert row().gone_at is not None


def test_one_that_fails_halts_with_its_last_words(ground: Ground):
    under_test(ground)
    fails(ground)
    ground.rounds(2)

    assert ground.plan.state == PlanState.HALTED
    assert answer(ground).answer == "fail"
    assert answer(ground).sentence == f"The test Job failed on {CANARY}. The test ended with exit code 1. {WORDS}"
    assert PlanEvent.objects.filter(to="test-failed", reason__contains=WORDS).exists()


@pytest.mark.nightly
def test_who_resumes_has_it_run_again(ground: Ground):
    under_test(ground)
    fails(ground)
    ground.rounds(3)
    pods_go(ground)
    ground.rounds(2)
    assert ground.plan.state == PlanState.HALTED
    plan_control.resume(ground.plan, actor=ground.ada, reason="The cable was out.", now=ground.clock())
    ground.rounds(4)

    assert ground.plan.state == PlanState.PROMOTING
    assert len(jobs(ground)) == 1
    completes(ground)
    ground.rounds(3)
    assert ground.stage().state == StageState.PASSED
    assert TestJob.objects.count() == 2


@pytest.mark.nightly
def test_one_that_was_kept_from_running_shows_nothing_and_is_made_again(ground: Ground):
    """No answer is no pass, and no fault of the node."""
    under_test(ground)
    ground.store.delete(JOB, jobs(ground)[0]["metadata"]["name"], NAMESPACE, grace_s=0)
    ground.rounds(2)
    assert (answer(ground).answer, answer(ground).cause) == ("wait", "unknown")
    assert jobs(ground) == []

    ground.clock.move(seconds=AGAIN_AFTER.total_seconds())
    ground.rounds(2)

    assert len(jobs(ground)) == 1
    assert ground.plan.state == PlanState.PROMOTING


def test_an_answer_from_before_the_change_is_none(ground: Ground):
    under_test(ground)
    completes(ground)
    ground.round()
    assert row().outcome == "passed"
    Target.objects.filter(node_name=CANARY).update(state_since=ground.clock() + timedelta(seconds=1))
    ground.clock.move(seconds=2)
    ground.rounds(3)

    assert TestJob.objects.count() == 2
    assert answer(ground).answer == "wait"


@pytest.mark.nightly
@pytest.mark.parametrize("verb", [plan_control.roll_back, plan_control.abort])
def test_a_plan_that_goes_another_way_leaves_none(ground: Ground, verb):
    under_test(ground)
    plan_control.halt(ground.plan, actor=ground.ada, reason="Stop.", now=ground.clock())
    ground.round()
    assert len(jobs(ground)) == 1  # what runs is followed

    verb(Plan.objects.get(pk=ground.plan.pk), actor=ground.ada, reason="No.", now=ground.clock())
    ground.rounds(2)

    assert jobs(ground) == []
    assert row().outcome == "unknown"
    assert row().gone_at is not None


@pytest.mark.nightly
def test_no_plan_ends_before_it_is_gone(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    under_test(ground)
    deleted = client.delete_job

    def forbidden(*_: object) -> None:
        raise client.Forbidden('jobs.batch is forbidden: cannot delete resource "jobs".')

    monkeypatch.setattr(client, "delete_job", forbidden)
    plan_control.halt(ground.plan, actor=ground.ada, reason="Stop.", now=ground.clock())
    ground.round()
    plan_control.abort(ground.plan, actor=ground.ada, reason="No.", now=ground.clock())
    for name in (CANARY, "gpu-h100-001", "gpu-h100-002"):
        ground.set_state(name, "upgrade-done")
    ground.rounds(9)
    assert ground.plan.state == PlanState.ABORTING
    assert f"The plan ends once the test Job on {CANARY} is deleted." in ground.plan.waiting_for
    assert f"kubectl -n {NAMESPACE} delete job {row().job_name}" in ground.plan.waiting_for

    monkeypatch.setattr(client, "delete_job", deleted)
    ground.rounds(3)
    assert ground.plan.state == PlanState.ABORTED
    assert jobs(ground) == []


def test_while_the_cluster_is_stopped_none_is_made(ground: Ground):
    changed_without_a_job = {"driver_version": {}, "failure_budget": {}, "test_job": {}}
    ground.armed(gates=changed_without_a_job)
    ground.round()
    ground.stop_everything("incident 4711")
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(5)

    assert jobs(ground) == []
    assert not TestJob.objects.exists()


def test_a_plan_that_was_halted_in_this_moment_makes_none(ground: Ground):
    """The guarded write loses."""
    changed(ground)
    TestJob.objects.all().delete()
    writer = ground.writer()
    Plan.objects.filter(pk=ground.plan.pk).update(state=PlanState.HALTED)
    target = ground.target()

    with pytest.raises(LostRace):
        test_jobs.create_test_jobs(writer, CreateTestJobs(0, {target.node_uid: CANARY}))

    assert not TestJob.objects.exists()


def test_a_node_that_changed_again_in_this_moment_gets_none(ground: Ground):
    changed(ground)
    TestJob.objects.all().delete()
    writer, target = ground.writer(), ground.target()
    Target.objects.filter(pk=target.pk).update(state=TargetState.CHANGING)

    with pytest.raises(LostRace, match="no longer changed"):
        test_jobs.create_test_jobs(writer, CreateTestJobs(0, {target.node_uid: CANARY}))


def test_a_second_worker_doubles_none(ground: Ground):
    under_test(ground)

    with pytest.raises(LostRace, match="already has a test Job"):
        test_jobs.create_test_jobs(ground.writer(), CreateTestJobs(0, {ground.target().node_uid: CANARY}))

    assert len(jobs(ground)) == 1


@pytest.mark.parametrize("is_after", [False, True], ids=["before the write", "after the write"])
def test_a_killed_worker_neither_loses_nor_doubles_it(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, *, is_after: bool
):
    ground.armed(gates=GATES)
    ground.round()
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    create = client.create_job

    def killed(*given: Any) -> None:
        if is_after:
            create(*given)
        raise KilledError

    monkeypatch.setattr(client, "create_job", killed)
    with pytest.raises(KilledError):
        ground.rounds(5)
    monkeypatch.setattr(client, "create_job", create)
    ground.rounds(2)
    if not is_after:  # a request that was lost may land within a minute: then it never came to be, and is made again
        assert jobs(ground) == []
        ground.clock.move(minutes=1)
        ground.rounds(2)
        ground.clock.move(minutes=1)
        ground.rounds(2)

    assert len(jobs(ground)) == 1
    assert TestJob.objects.count() == (1 if is_after else 2)


def test_where_it_may_not_be_made_the_plan_waits_and_says_so(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    def forbidden(*_: object) -> None:
        raise client.Forbidden('jobs.batch is forbidden: cannot create resource "jobs".')

    monkeypatch.setattr(client, "create_job", forbidden)
    changed(ground)
    ground.rounds(3)

    assert ground.plan.state == PlanState.PROMOTING
    assert (answer(ground).answer, answer(ground).cause) == ("wait", "unknown")
    assert 'cannot create resource "jobs"' in ground.plan.waiting_for


def test_a_job_of_that_name_that_is_not_ours_is_left_alone(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    create = client.create_job

    def taken(connection, namespace: str, job: dict[str, Any]):
        job["metadata"]["labels"] = {"team": "a"}
        create(connection, namespace, job)
        raise client.Conflict("There is one.")

    monkeypatch.setattr(client, "create_job", taken)
    changed(ground)
    ground.round()
    ground.rounds(2)

    assert "not created by Quarterdeck" in TestJob.objects.earliest("pk").says
    assert len(jobs(ground)) == 1


@pytest.mark.nightly
def test_a_plan_without_the_gate_asks_nothing_and_makes_nothing(ground: Ground):
    ground.armed()
    ground.round()
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(4)

    assert jobs(ground) == []
    assert ground.stage().state == StageState.PASSED


def test_who_leaves_the_cluster_leaves_none(ground: Ground, capsys: pytest.CaptureFixture[str]):
    """Z33: found by its label, in the cluster itself."""
    under_test(ground)

    call_command("release_all", "north", "--dry-run", "--give-up-plans", "We leave.")
    name = row().job_name
    assert f"Job {NAMESPACE}/{name}: tests a node for {ground.plan.mark}; would be deleted" in capsys.readouterr().out
    assert len(jobs(ground)) == 1

    call_command("release_all", "north", "--give-up-plans", "We leave.")
    assert jobs(ground) == []
    assert not TestJob.objects.in_the_cluster().exists()


def test_the_job_of_an_operation_is_not_the_row_of_a_plan_with_its_number(ground: Ground):
    under_test(ground)
    labels = {"metadata": {"labels": {"quarterdeck.io/proves-for": "operation-1"}}}
    ground.store.patch(JOB, row().job_name, labels, NAMESPACE, how="merge")

    call_command("release_all", "north", "--give-up-plans", "We leave.")

    assert jobs(ground) == []
    assert TestJob.objects.in_the_cluster().get().pk == row().pk


def test_a_start_asks_for_every_right_that_a_test_job_uses(ground: Ground):
    used = asked_in(ground, lambda: changed(ground))
    completes(ground)
    used |= asked_in(ground, lambda: ground.rounds(2))
    of_jobs = {act for act in used if act.what == "jobs"}

    plan = Plan.objects.select_related("cluster").get(pk=ground.plan.pk)
    assert unnamed(of_jobs, needed(plan, [NAMESPACE], with_slices=False, with_jobs=True)) == set()
    assert {act.verb for act in of_jobs} == {"get", "create", "delete"}
    asked = facts_of(Questions(plan, ground.connection, ground.clock)).rights
    assert {right.verb for right in asked if right.kind == "jobs.batch" and right.is_needed} == {
        act.verb for act in of_jobs
    }


@pytest.mark.parametrize(
    ("printed", "expected", "says"),
    [
        (["starting", '{"sum": 312.5}'], "pass", "sum is 312.5."),
        (['{"sum": 92}'], "fail", "sum is 92."),
        (["no JSON"], "wait", "Its output has no number at sum."),
    ],
)
def test_the_number_that_it_prints_decides(ground: Ground, printed: list[str], expected: str, says: str):
    under_test(ground, metric="sum", at_least=150, command="bench --json")
    (job,) = jobs(ground)
    assert job["spec"]["template"]["spec"]["containers"][0]["command"] == ["bench", "--json"]
    ground.simulation.ends.read_log = lambda *_: [f"2026-01-08T12:00:09Z {line}" for line in printed]
    times = {"startedAt": "2026-01-08T12:00:00Z", "finishedAt": "2026-01-08T12:01:35Z"}
    play(ground, {"terminated": {"exitCode": 0, "reason": "Completed", **times}}, "Succeeded", node=CANARY)

    completes(ground)
    ground.rounds(2)

    assert (answer(ground).answer, row().said) == (expected, says)
    assert row().gpu_time == timedelta(seconds=95)
    assert ground.plan.state == (PlanState.HALTED if expected == "fail" else PlanState.PROMOTING)


def test_a_result_worse_than_the_nodes_past_halts_and_is_kept_with_its_driver(ground: Ground):
    under_test(ground, metric="sum", at_most_worse_percent=10, command="bench --json")
    job = row()
    same = ("node_uid", "node_name", "namespace", "image", "resource", "amount", "command", "metric", "gpu_product")
    plan, earlier = ground.plan, ground.draft()
    ground.plan = plan
    TestJob.objects.create(
        plan=earlier, driver_version="550.1", value=400.0, outcome="passed", gone_at=ground.clock(),
        intended_at=ground.clock() - timedelta(days=9), told_at=ground.clock() - timedelta(days=9),
        **{name: getattr(job, name) for name in same},
    )  # fmt: skip
    ground.simulation.ends.read_log = lambda *_: ['2026-01-08T12:00:09Z {"sum": 312.5}']
    play(ground, {"terminated": {"exitCode": 0, "reason": "Completed"}}, "Succeeded", node=CANARY)

    completes(ground)
    ground.rounds(2)

    assert (answer(ground).answer, answer(ground).cause) == ("fail", "worse")
    assert answer(ground).summary == "sum is 22 % worse than its baseline."
    assert ground.plan.state == PlanState.HALTED
    assert (job.driver_version, job.gpu_product) == (NEW, "NVIDIA-H100-80GB-HBM3")


@pytest.mark.parametrize(
    ("printed", "code", "answer_", "says"),
    [
        (['{"average_bus_bandwidth": {"bandwidth": 412.5}}'], 0, "pass", "average_bus_bandwidth.bandwidth is 412.5."),
        (["no such file"], 126, "wait", "no such file"),
        (["wrong result"], 1, "fail", "wrong result"),
    ],
)
def test_a_template_names_command_resources_deadline_and_what_its_exit_code_means(
    ground: Ground, settings, printed: list[str], code: int, answer_: str, says: str
):
    settings.TEST_IMAGES = {"nccl": "registry.example/nccl-tests:2.19.6"}
    under_test(ground, template="nccl")
    (job,) = jobs(ground)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    limits = container["resources"]["limits"]
    ground.simulation.ends.read_log = lambda *_: [f"2026-01-08T12:00:09Z {line}" for line in printed]
    end = {"exitCode": code, "reason": "Completed" if not code else "Error"}
    play(ground, {"terminated": end}, "Failed" if code else "Succeeded", node=CANARY)
    if not code:
        completes(ground)
    ground.rounds(2)

    assert container["image"] == "registry.example/nccl-tests:2.19.6"
    assert f"-g {limits['nvidia.com/gpu']} -J" in container["command"][-1]
    assert (limits["memory"], job["spec"]["activeDeadlineSeconds"]) == ("8Gi", 1800)
    assert job["spec"]["template"]["spec"]["volumes"][0]["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Gi"}
    assert answer(ground).answer == answer_
    assert says in TestJob.objects.earliest("pk").said


def test_the_job_runs_the_image_of_the_pool(ground: Ground):
    image = "registry.example/vectoradd:13"
    a_pool(ground.cluster, test_images=f"vectoradd={image}").nodes.add(*Node.objects.all())
    under_test(ground)

    assert jobs(ground)[0]["spec"]["template"]["spec"]["containers"][0]["image"] == image


def test_a_node_without_an_image_gets_no_job_until_one_is_set(ground: Ground, settings):
    ground.armed(gates=GATES)
    image, settings.TEST_IMAGES = settings.TEST_IMAGES["vectoradd"], {}
    changes(ground)
    ground.rounds(3)

    assert jobs(ground) == []
    assert (row().outcome, TestJob.objects.count()) == ("unknown", 1)
    assert (answer(ground).answer, answer(ground).cause) == ("wait", "unknown")
    assert "names vectoradd. Set one." in answer(ground).summary
    first = row().told_at
    ground.clock.move(seconds=AGAIN_AFTER.total_seconds())
    ground.rounds(2)
    assert (TestJob.objects.count(), row().told_at > first) == (1, True), "one row, however long it lasts"

    settings.TEST_IMAGES = {"vectoradd": image}
    ground.clock.move(seconds=AGAIN_AFTER.total_seconds())
    ground.rounds(2)

    assert len(jobs(ground)) == 1


@pytest.mark.parametrize(("percent", "answer_"), [(0, "fail"), (40, "wait")])
def test_a_template_is_judged_by_the_passes_of_the_pool_too(ground: Ground, settings, percent: int, answer_: str):
    settings.TEST_IMAGES = {"nccl": "registry.example/nccl-tests:2.19.6"}
    under_test(ground, template="nccl", at_most_worse_percent=percent)
    job, others = row(), []
    pool = a_pool(ground.cluster)
    pool.nodes.add(Node.objects.get(uid=job.node_uid))
    for number in range(5):
        node = a_node(ground.cluster, f"passed-{number}", pool=pool)
        others.append(NodeTestJob(
            operation=an_operation(ground.cluster, steps=("test_job",)), node_uid=node.uid, node_name=node.name,
            test="nccl", outcome="passed", gpu_product=job.gpu_product, amount=job.amount, command=job.command,
            numbers={BANDWIDTH: 450}, namespace="x", image="x", resource=job.resource, deadline_s=1800,
            intended_at=ground.clock(), told_at=ground.clock(), gone_at=ground.clock(), driver_version=NEW,
        ))  # fmt: skip
    NodeTestJob.objects.bulk_create(others)
    ground.simulation.ends.read_log = lambda *_: [
        '2026-01-08T12:00:09Z {"average_bus_bandwidth": {"bandwidth": 312.5}}'
    ]
    play(ground, {"terminated": {"exitCode": 0, "reason": "Completed"}}, "Succeeded", node=CANARY)

    completes(ground)
    ground.rounds(2)

    assert answer(ground).answer == answer_
    if answer_ == "fail":
        assert "slower than the pool" in answer(ground).sentence
    else:
        assert row().outcome == "passed"  # with a percentage of its own, the gate waits for a baseline
    assert row().numbers == {BANDWIDTH: 312.5}
