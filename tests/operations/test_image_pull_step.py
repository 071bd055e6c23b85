"""The step that pulls an image: what its pod is like, its three results, and that no Job is left behind (Z36)."""

from collections.abc import Callable
from typing import Any

import pytest

from edges.transition_errors import LostRace
from fleet.models import Node
from kube import client
from operations import commands
from operations.lifecycle import OperationState
from operations.models import Freeze, NodeTestJob, Operation, Quarantine
from operations.operation_round import OperationRound, clean_up_operation
from operations.refusals import BadOperation
from operations.steps.image_pull import ImagePullStep
from operations.test_jobs.pull_job import DriverPull
from simulator.kinds import CONFIG_MAP, JOB, NODE, POD
from tests.operations.test_rounds import begin, node, rounds
from tests.operations.test_test_job_step import NAMESPACE, ends, finished, jobs
from tests.rollouts.engine.ground import CANARY, NEW, OLD, REST, Ground

pytestmark = pytest.mark.django_db
IMAGE = "registry.example/llm/server:1.4"
MISSING = {"waiting": {"reason": "ErrImagePull", "message": f'failed to resolve reference "{IMAGE}": not found'}}
AWAY = {"waiting": {"reason": "ErrImagePull", "message": "dial tcp: lookup registry.example: no such host"}}
PULLS = {"waiting": {"reason": "ContainerCreating"}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": "2026-01-08T12:00:09Z"}}


def begun(ground: Ground, *names: str, **options: Any) -> Operation:
    return begin(ground, "pull-image", *names or (CANARY,), options={"pulled_image": IMAGE} | options)


def of_driver(ground: Ground, image: str = "") -> Operation:
    uid = Node.objects.get(cluster=ground.cluster, name=CANARY).uid
    return begin(ground, "pull-image", CANARY, options=DriverPull(OLD, NEW, {uid: image}).as_option)


def shows(ground: Ground, state: dict[str, Any], phase: str = "Pending") -> None:
    """Shows the pod of the Job in this state, as controller and kubelet would."""
    (job,) = jobs(ground)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
    template, name = job["spec"]["template"], f"{job['metadata']['name']}-x"
    metadata = {"name": name, **template["metadata"], "ownerReferences": [owner | {"controller": True}]}
    if not ground.store.list(POD, NAMESPACE, label_selector="quarterdeck.io/proof")[0]:
        ground.store.create(POD, {"metadata": metadata, "spec": template["spec"] | {"nodeName": CANARY}}, NAMESPACE)
    status = {"name": "pull", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    seen = {"phase": phase, "startTime": "2026-01-08T12:00:01Z", "containerStatuses": [status]}
    ground.store.patch(POD, name, {"status": seen}, NAMESPACE, how="merge", subresource="status")


def pod_of(ground: Ground) -> dict[str, Any]:
    (job,) = jobs(ground)
    return job["spec"]["template"]["spec"]


def test_its_pod_pulls_the_named_image_beside_whatever_runs(ground: Ground):
    before = ground.node(CANARY)
    rounds(ground, begun(ground))

    (container,) = pod_of(ground)["containers"]
    assert (container["image"], container["imagePullPolicy"], container["command"]) == (IMAGE, "Always", ["/bin/true"])
    assert set(container["resources"]["limits"]) == {"cpu", "memory"}
    assert CANARY in str(pod_of(ground)["affinity"])
    assert ground.node(CANARY) == before


@pytest.mark.parametrize("image", ["", " ", "two words", "tab\there", "x" * 501, "réseau/x:1"])
def test_an_image_that_is_no_reference_is_refused(ground: Ground, image: str):
    with pytest.raises(BadOperation, match="without blanks"):
        begun(ground, pulled_image=image)


def test_what_was_pulled_is_done_once_its_job_and_pod_are_gone(ground: Ground):
    operation = rounds(ground, begun(ground))
    shows(ground, DONE, "Succeeded")
    rounds(ground, operation)

    assert jobs(ground) == []
    assert node(operation).state == "running"

    operation = finished(ground, operation)
    assert operation.state == OperationState.FINISHED
    assert (node(operation).state, node(operation).reason) == ("done", f"{IMAGE}: Pulled within 8 s.")
    assert node(operation).progress == {"image": IMAGE, "outcome": "pulled"}


def test_what_the_registry_refuses_has_failed_in_its_words(ground: Ground):
    operation = rounds(ground, begun(ground))
    shows(ground, MISSING)
    operation = finished(ground, operation)

    assert (node(operation).state, node(operation).progress["outcome"]) == ("failed", "failed")
    assert MISSING["waiting"]["message"] in node(operation).reason
    assert jobs(ground) == []


def test_a_registry_that_is_away_is_tried_for_three_minutes_and_is_unknown(ground: Ground):
    operation = rounds(ground, begun(ground))
    shows(ground, AWAY)
    operation = rounds(ground, operation, 6)

    assert (node(operation).state, NodeTestJob.objects.get().outcome) == ("running", "")
    operation = rounds(ground, operation)
    operation = finished(ground, operation)
    assert (node(operation).state, node(operation).progress["outcome"]) == ("failed", "unknown")


def test_a_pull_that_recovers_is_no_longer_failing(ground: Ground):
    """Else the next short failure would end it at once."""
    operation = rounds(ground, begun(ground))
    shows(ground, AWAY)
    rounds(ground, operation, 6)
    shows(ground, PULLS)
    rounds(ground, operation)
    shows(ground, AWAY)
    operation = rounds(ground, operation, 2)

    assert NodeTestJob.objects.get().outcome == ""


def test_few_nodes_pull_at_once(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """The registry and its mirrors serve everybody else, too."""
    monkeypatch.setattr(ImagePullStep, "at_once", 2)
    operation = rounds(ground, begun(ground, CANARY, *REST), 2)

    assert (len(jobs(ground)), operation.nodes.filter(state="pending").count()) == (2, 1)


# A driver's image


def test_a_drivers_image_is_pulled_as_its_pod_would(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """A service account may have given its pod secrets that its template has not."""
    spec = {"imagePullSecrets": [{"name": "ngc"}], "serviceAccountName": "nvidia-driver"}
    monkeypatch.setattr(client, "get_pod_spec", lambda *_: spec)
    operation = rounds(ground, of_driver(ground))

    pod = pod_of(ground)
    assert pod["containers"][0]["image"].startswith(f"nvcr.io/nvidia/driver:{NEW}-")
    assert (pod["serviceAccountName"], pod["imagePullSecrets"]) == ("nvidia-driver", [{"name": "ngc"}])
    assert pod["securityContext"]["runAsUser"] == 65534
    assert node(operation).progress["image"] == pod["containers"][0]["image"]


def no_daemonset(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "get_daemonset", lambda *_: None)


def no_pod(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "list_pods_on", lambda *_, **__: [])


def another_version(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operations.steps.image_pull.image_for", lambda *_, **__: "")


@pytest.mark.parametrize(
    ("lost", "why"),
    [
        (no_daemonset, "has no driver pod, so the image and its pull secrets are unknown"),
        (no_pod, "has no driver pod, so its pull secrets are unknown"),
        (another_version, "no longer shows the image that the operator would use"),
    ],
)
def test_without_a_driver_pod_to_be_like_nothing_is_made(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, lost: Callable[..., None], why: str
):
    operation = of_driver(ground)
    lost(ground, monkeypatch)
    operation = rounds(ground, operation)

    assert (node(operation).state, jobs(ground)) == ("failed", [])
    assert why in node(operation).reason


def test_a_plan_names_an_image_for_each_node_and_for_no_other(ground: Ground):
    with pytest.raises(BadOperation, match="Name an image for each node"):
        begin(ground, "pull-image", CANARY, options=DriverPull(OLD, NEW, {"another": "x"}).as_option)


# What forbids it


def frozen(ground: Ground) -> None:
    Freeze.objects.create(cluster=ground.cluster, by="bob", at=ground.clock(), reason="quarter end")


def stopped(ground: Ground) -> None:
    Freeze.objects.create(is_stop=True, binds_rollbacks=True, by="bob", at=ground.clock(), reason="incident")


def switched_off(ground: Ground) -> None:
    switch = {"metadata": {"name": "quarterdeck-stop"}, "data": {"reason": "incident"}}
    ground.store.create(CONFIG_MAP, switch, "quarterdeck")


@pytest.mark.parametrize("forbid", [frozen, stopped, switched_off])
def test_nothing_new_is_pulled_meanwhile_and_a_job_that_runs_is_followed(ground: Ground, forbid: Callable[..., None]):
    running = rounds(ground, begun(ground))
    shows(ground, DONE, "Succeeded")
    waiting = begun(ground, REST[0])

    forbid(ground)
    waiting, running = rounds(ground, waiting), finished(ground, running)

    assert node(running).state == "done"
    assert jobs(ground) == []
    assert not NodeTestJob.objects.filter(operation=waiting).exists()
    assert node(waiting).reason


@pytest.mark.parametrize("forbid", [frozen, stopped, switched_off])
def test_a_stop_in_the_middle_of_the_look_at_the_driver_counts(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, forbid: Callable[..., None]
):
    operation, get_pod_spec = of_driver(ground), client.get_pod_spec

    def forbid_meanwhile(*given: Any) -> dict[str, Any]:
        forbid(ground)
        return get_pod_spec(*given)

    monkeypatch.setattr(client, "get_pod_spec", forbid_meanwhile)
    operation = rounds(ground, operation)

    assert (jobs(ground), node(operation).state) == ([], "running")
    assert node(operation).reason.endswith((": quarter end.", "incident", "incident."))


def test_a_node_that_is_not_ready_pulls_nothing(ground: Ground):
    status = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    ground.store.patch(NODE, CANARY, status, how="merge", subresource="status")
    operation = rounds(ground, begun(ground))

    assert (node(operation).reason, jobs(ground)) == ("The node is not Ready: no pod starts there.", [])


def test_a_quarantine_does_not_wait_for_a_pull(ground: Ground):
    pull = rounds(ground, begun(ground))
    shows(ground, PULLS)
    quarantine = rounds(ground, begin(ground, "quarantine", CANARY))
    pull = rounds(ground, pull)
    rounds(ground, quarantine)
    clean_up_operation(pull.pk, clock=ground.clock)

    assert f"Operation {quarantine.pk} waits for the node." in node(pull).reason
    assert node(pull).progress == {"outcome": "unknown", "is_expected": True}
    assert Quarantine.objects.in_force().get().placed_at
    assert jobs(ground) == []


def test_a_pull_that_gives_way_does_not_pause_the_other_nodes(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ImagePullStep, "at_once", 1)
    pull = rounds(ground, begun(ground, CANARY, *REST))
    hold = rounds(ground, begin(ground, "hold-driver", CANARY))
    pull = rounds(ground, pull, 2)

    assert [each.state for each in pull.nodes.order_by("position")] == ["failed", "running", "pending"]
    assert (pull.state, node(rounds(ground, hold)).state) == (OperationState.RUNNING, "done")


def test_a_node_whose_disk_is_full_pulls_nothing(ground: Ground):
    conditions = [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}]
    ground.store.patch(NODE, CANARY, {"status": {"conditions": conditions}}, how="merge", subresource="status")
    operation = rounds(ground, begun(ground))

    assert (node(operation).state, "DiskPressure" in node(operation).reason, jobs(ground)) == ("failed", True, [])


@pytest.mark.parametrize("kind", ["debug", "logs", "test"])
def test_a_stop_between_the_look_and_the_creation_of_any_job_counts(ground: Ground, monkeypatch, kind: str):
    if kind == "test":
        ground.cordon(CANARY)
        ground.look()
    operation, look = begin(ground, kind, CANARY, options={"test": "dcgm-2"} if kind == "test" else {}), client.get_node

    def slow(*given: Any) -> Any:
        stopped(ground)
        monkeypatch.setattr(client, "get_node", look)
        return look(*given)

    monkeypatch.setattr(client, "get_node", slow)
    rounds(ground, operation)
    assert (Freeze.objects.count(), jobs(ground)) == (1, [])


def test_another_pull_waits_for_it(ground: Ground):
    pull = rounds(ground, begun(ground))
    other = rounds(ground, begun(ground, pulled_image="x:1"))
    pull = rounds(ground, pull)

    assert (node(pull).state, node(other).state) == ("running", "pending")


def test_without_the_right_it_names_the_rule_to_grant(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise client.Forbidden('jobs.batch is forbidden: User "x" cannot create resource "jobs"')

    monkeypatch.setattr(client, "create_job", refuse)
    operation = rounds(ground, begun(ground))

    assert node(operation).reason.startswith(f"Quarterdeck may not create Jobs in {NAMESPACE}. Grant the rule")
    assert node(operation).progress["outcome"] == "unknown"


# Nothing is left behind, and nothing is written by who lost the turn


def test_a_cancelled_pull_leaves_no_job_and_no_result(ground: Ground):
    operation = rounds(ground, begun(ground))
    commands.cancel(operation, actor="ada", reason="Not today.", now=ground.clock())
    clean_up_operation(operation.pk, clock=ground.clock)

    assert (jobs(ground), node(operation).state) == ([], "cancelled")


def test_a_test_ends_the_job_that_a_cancelled_pull_has_left(ground: Ground):
    pull = rounds(ground, begun(ground))
    ends(ground)
    commands.cancel(pull, actor="ada", reason="Not today.", now=ground.clock())
    rounds(ground, begin(ground, "quarantine", CANARY))
    test = rounds(ground, begin(ground, "test", CANARY, options={"test": "dcgm-3"}))

    assert (node(test).reason, jobs(ground)) == ("An earlier test Job is being deleted.", [])


def test_a_job_of_somebody_else_under_its_name_stays_and_proves_nothing(ground: Ground, monkeypatch):
    operation = begun(ground)
    create = client.create_job

    def theirs_first(connection: client.Connection, namespace: str, job: dict[str, Any]) -> Any:
        spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
        theirs = {"metadata": {"name": job["metadata"]["name"]}, "spec": {"template": {"spec": spec}}}
        ground.store.create(JOB, theirs, NAMESPACE)
        return create(connection, namespace, job)

    monkeypatch.setattr(client, "create_job", theirs_first)
    operation = rounds(ground, operation)

    assert "not created by Quarterdeck" in node(operation).reason
    assert node(operation).progress["outcome"] == "unknown"
    assert len(jobs(ground)) == 1


@pytest.mark.parametrize("write", ["row", "create", "result", "delete"])
def test_a_guard_that_loses_before_each_write_changes_nothing(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, write: str
):
    """Another worker has the turn, or somebody paused or cancelled the operation."""
    operation = begun(ground)
    calls: list[int] = []
    if write in ("result", "delete"):
        rounds(ground, operation)
        shows(ground, DONE, "Succeeded")
    # Guards run before: the row; each request and write of the tracker.
    loses_at = {"row": 1, "create": 2, "result": 3, "delete": 4}[write]

    def lose(*_: object) -> None:
        calls.append(1)
        if len(calls) >= loses_at:
            raise LostRace("Another worker has the turn.")

    monkeypatch.setattr(OperationRound, "_guard", lose)
    operation = rounds(ground, operation)

    rows = list(NodeTestJob.objects.values_list("outcome", "gone_at"))
    assert operation.waiting_for == "Another worker has the turn."
    assert (len(rows), len(jobs(ground))) == {"row": (0, 0), "create": (1, 0)}.get(write, (1, 1))
    assert write != "result" or rows == [("", None)]
    assert write != "delete" or rows == [("passed", None)]


def test_a_lost_answer_makes_the_job_once(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    operation, create = begun(ground), client.create_job

    def make_and_lose(*given: Any) -> None:
        create(*given)
        raise client.Unreachable("It did not answer in time.")

    with monkeypatch.context() as patched:
        patched.setattr(client, "create_job", make_and_lose)
        operation = rounds(ground, operation)
    operation = rounds(ground, operation)

    assert len(jobs(ground)) == 1
    assert NodeTestJob.objects.get().made_at is not None
