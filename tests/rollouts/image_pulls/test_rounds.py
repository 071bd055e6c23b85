"""Z36 as rounds: rows before writes, an answer read from the pod, and nothing left behind."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.core.management import call_command

from edges.transition_errors import LostRace
from fleet.models import Cluster
from kube import client
from kube.structs import PodSeen
from operations.models import Freeze
from operations.test_jobs.pull_progress import PullOutcome
from people.models import AuditEntry
from rollouts.commands.image_pulls import ask, cancel
from rollouts.image_pulls.base import LANDED_BY, PullRound, redacted_line
from rollouts.image_pulls.image_pull_round import IN_MOTION, LOOK_AGAIN, run_pull
from rollouts.image_pulls.job_creation import intend
from rollouts.image_pulls.job_results import observe_pull_jobs, pod_look, record_job_progress
from rollouts.live_checks.required_rights import needed, spared
from rollouts.models import ImagePull, Plan, PullJob
from simulator.fleets.plan import Mode
from simulator.kinds import CONFIG_MAP, JOB, POD
from simulator.run import Simulation
from tests.rollouts.engine.conftest import ground, start  # noqa: F401 (fixtures)
from tests.rollouts.engine.ground import CANARY, NEW, Ground, a_ground
from tests.rollouts.live_checks.rights import asked_in, unnamed, unused

pytestmark = [pytest.mark.rounds, pytest.mark.django_db]

NAMESPACE = "gpu-operator"
ERR = {"waiting": {"reason": "ErrImagePull", "message": f'failed to pull image "x:{NEW}": x:{NEW}: not found'}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": "2026-01-08T12:00:09Z"}}


class Pulling:
    def __init__(self, ground: Ground) -> None:  # noqa: F811
        self.ground = ground
        self.plan = ground.draft()
        self.pull = ImagePull()

    def ask(self, **given: Any) -> "Pulling":
        self.pull = ask(self.plan, actor=self.ground.ada, reason="Before the window.", now=self.now, **given)
        return self

    @property
    def now(self):
        return self.ground.clock()

    def round(self) -> "Pulling":
        run_pull(self.pull.pk, owner="worker-1", clock=self.ground.clock)
        self.ground.clock.move(seconds=2)
        self.pull.refresh_from_db()
        return self

    def row(self) -> PullJob:
        return PullJob.objects.select_related("pull").get(pull=self.pull)

    def jobs(self) -> list[dict[str, Any]]:
        return self.ground.store.list(JOB, NAMESPACE)[0]

    def play(self, state: dict[str, Any], phase: str = "Pending") -> None:
        """As controller and kubelet would."""
        (job,) = self.jobs()
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": job["metadata"]["name"],
            "uid": job["metadata"]["uid"],
        }
        template = job["spec"]["template"]
        metadata = {"name": f"{owner['name']}-x", "labels": template["metadata"]["labels"]}
        metadata["annotations"] = template["metadata"]["annotations"]
        metadata["ownerReferences"] = [owner | {"controller": True}]
        if not self.ground.store.list(POD, NAMESPACE, label_selector="quarterdeck.io/image-pull")[0]:
            self.ground.store.create(POD, {"metadata": metadata, "spec": template["spec"]}, NAMESPACE)
        status = {"phase": phase, "startTime": "2026-01-08T12:00:01Z"}
        status["containerStatuses"] = [
            {"name": "pull", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        ]
        name = metadata["name"]
        self.ground.store.patch(POD, name, {"status": status}, NAMESPACE, how="merge", subresource="status")

    def pod_goes(self) -> None:
        for pod in self.ground.store.list(POD, NAMESPACE, label_selector="quarterdeck.io/image-pull")[0]:
            self.ground.store.delete(POD, pod["metadata"]["name"], NAMESPACE, grace_s=0)


@pytest.fixture
def pulling(ground: Ground) -> Pulling:  # noqa: F811
    return Pulling(ground)


def test_a_job_is_made_for_the_node_that_goes_first_with_the_operators_image(pulling: Pulling):
    pulling.ask().round()

    (job,) = pulling.jobs()
    pod = job["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == f"nvcr.io/nvidia/driver:{NEW}-{pulling.row().system}"
    assert pulling.row().node_name == CANARY
    assert job["metadata"]["labels"]["quarterdeck.io/pulls-for"] == pulling.plan.mark
    assert pulling.row().made_at is not None


def test_a_live_check_asks_for_every_right_that_a_pull_uses(pulling: Pulling):
    """What only a pull uses is named as such: without it no more than that is refused."""
    pulling.ask()
    used = asked_in(pulling.ground, pulling.round)
    pulling.play(ERR)
    used |= asked_in(pulling.ground, lambda: [pulling.round() for _ in range(4)])

    plan = Plan.objects.select_related("cluster").get(pk=pulling.plan.pk)
    rights = [*needed(plan, [NAMESPACE], with_slices=False), *spared([NAMESPACE])]
    assert unnamed(used, rights) == set()
    assert [right.resource.plural for right in unused(used, spared([NAMESPACE]))] in ([], ["daemonsets"])


def test_where_the_policy_runs_the_driver_the_image_is_told_by_its_daemonset(
    db: None,
    start: Callable[..., Simulation],  # noqa: F811
):
    simulation = start()
    made = a_ground(simulation, Mode.CLUSTER_POLICY)
    pulling = Pulling(made).ask().round()

    images = [job["spec"]["template"]["spec"]["containers"][0]["image"] for job in pulling.jobs()]
    assert images == list(PullJob.objects.values_list("image", flat=True))
    assert all(f"/driver:{NEW}-" in image for image in images)
    made.connection.close()
    simulation.stop()


def test_the_pull_secrets_are_those_of_the_drivers_pod(pulling: Pulling, monkeypatch: pytest.MonkeyPatch):
    """Its service account may have given it some that its template has not."""
    spec = {"imagePullSecrets": [{"name": "ngc"}], "serviceAccountName": "nvidia-driver"}
    monkeypatch.setattr(client, "get_pod_spec", lambda *_: spec)

    pulling.ask().round()

    (job,) = pulling.jobs()
    assert job["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "ngc"}]
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == "nvidia-driver"


def test_where_the_drivers_pod_is_another_by_now_it_is_found_anew(pulling: Pulling):
    pulling.ask()
    account = pulling.ground.store.get(POD, pulling.row().driver_pod, NAMESPACE)["spec"]["serviceAccountName"]
    PullJob.objects.update(driver_pod="that-was")

    pulling.round()

    (job,) = pulling.jobs()
    assert account != "default"
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == account


def test_where_no_driver_pod_tells_the_pull_secrets_nothing_is_known_and_nothing_made(pulling: Pulling):
    pulling.ask()
    pulling.ground.store.delete(POD, pulling.row().driver_pod, NAMESPACE, grace_s=0)

    pulling.round()

    assert pulling.jobs() == []
    assert (pulling.row().outcome, pulling.row().says) == (
        PullOutcome.UNKNOWN,
        f"{CANARY} has no driver pod, so the pull secrets are unknown.",
    )
    assert pulling.pull.ended_at is not None


def test_what_was_pulled_is_proven_and_its_job_is_gone(pulling: Pulling):
    pulling.ask().round()
    pulling.play(DONE, "Succeeded")

    pulling.round()
    pulling.pod_goes()
    pulling.round()

    row = pulling.row()
    assert (row.outcome, row.says, row.took) == (PullOutcome.PULLED, "Pulled within 8 s.", timedelta(seconds=8))
    assert pulling.jobs() == []
    assert row.gone_at is not None
    assert pulling.pull.ended_at is not None
    events = set(pulling.plan.events.values_list("to", flat=True))
    assert {"image-pull", "image-pulled", "pull-ended"} <= events


def test_it_is_not_over_before_its_pod_is_gone_too(pulling: Pulling):
    pulling.ask().round()
    pulling.play(DONE, "Succeeded")

    pulling.round().round()

    assert pulling.jobs() == []
    assert pulling.pull.ended_at is None


def test_a_missing_tag_is_an_answer_and_its_job_goes(pulling: Pulling):
    pulling.ask().round()
    pulling.play(ERR)

    pulling.round()
    pulling.pod_goes()
    pulling.round()

    assert pulling.row().outcome == PullOutcome.FAILED
    assert pulling.row().says.startswith("Image does not exist")
    assert pulling.jobs() == []
    assert pulling.pull.ended_at is not None


def test_a_worker_that_dies_between_row_and_job_makes_it_once(pulling: Pulling, monkeypatch: pytest.MonkeyPatch):
    pulling.ask()

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(client, "create_job", die)
        with pytest.raises(KeyboardInterrupt):
            pulling.round()
    assert pulling.row().intended_at is not None
    pulling.ground.clock.move(seconds=LANDED_BY.total_seconds())
    pulling.round().round()

    assert len(pulling.jobs()) == 1


def test_a_try_that_may_still_land_is_not_repeated(pulling: Pulling, monkeypatch: pytest.MonkeyPatch):
    """The second one would be through, deleted and forgotten when the first lands."""
    pulling.ask()

    lose(pulling, monkeypatch)
    pulling.round()

    assert pulling.jobs() == []
    assert pulling.pull.waiting_for == (
        f"It is unknown whether the Job for {CANARY} was created. Quarterdeck tries again a minute after the last try."
    )
    pulling.ground.clock.move(seconds=LANDED_BY.total_seconds())
    pulling.round()
    assert len(pulling.jobs()) == 1


def test_a_try_that_may_still_land_has_its_place_among_those_at_once(pulling: Pulling, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("rollouts.image_pulls.job_creation.AT_ONCE", 1)
    pulling.ask(nodes_each=2)

    lose(pulling, monkeypatch)
    pulling.round()

    assert pulling.jobs() == []


def test_another_job_of_that_name_hides_no_try_that_may_still_land(pulling: Pulling, monkeypatch: pytest.MonkeyPatch):
    pulling.ask()

    lose(pulling, monkeypatch)
    take_its_name(pulling)
    pulling.round()

    assert "not created by Quarterdeck" in pulling.row().says
    assert pulling.row().gone_at is None


def lose(pulling: Pulling, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round whose request for a Job is given up."""

    def give_up(*_: object) -> None:
        raise client.Unreachable("It did not answer in time.")

    with monkeypatch.context() as patched:
        patched.setattr(client, "create_job", give_up)
        pulling.round()


def take_its_name(pulling: Pulling) -> None:
    container = {"name": "main", "image": "busybox"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    theirs = {"metadata": {"name": pulling.row().job_name}, "spec": {"template": template}}
    pulling.ground.store.create(JOB, theirs, NAMESPACE)


def test_a_worker_that_dies_after_its_job_was_made_takes_it_for_its_own(
    pulling: Pulling, monkeypatch: pytest.MonkeyPatch
):
    pulling.ask()
    create = client.create_job

    def make_and_die(*given: Any) -> None:
        create(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(client, "create_job", make_and_die)
        with pytest.raises(KeyboardInterrupt):
            pulling.round()
    pulling.ground.clock.move(seconds=30)
    pulling.round()

    assert len(pulling.jobs()) == 1
    assert pulling.row().made_at is not None


def test_another_job_of_that_name_is_left_alone(pulling: Pulling):
    pulling.ask()
    take_its_name(pulling)

    pulling.round().round()
    pulling.ground.clock.move(seconds=LANDED_BY.total_seconds())
    pulling.round()

    assert [job["metadata"]["name"] for job in pulling.jobs()] == [pulling.row().job_name]
    assert pulling.row().outcome == PullOutcome.UNKNOWN
    assert "not created by Quarterdeck" in pulling.row().says
    assert pulling.pull.ended_at is not None


def test_a_cancelled_pull_deletes_its_jobs_and_makes_no_more(pulling: Pulling):
    pulling.ask(nodes_each=3).round()
    made = len(pulling.jobs())

    cancel(pulling.pull, actor=pulling.ground.ada, reason="Not today.", now=pulling.now)
    pulling.round().round()

    assert made == 3
    assert pulling.jobs() == []
    assert pulling.pull.ended_at is not None
    assert pulling.pull.ends_reason == "ada cancelled the pull: Not today."


def test_what_was_cancelled_before_anything_was_made_makes_nothing(pulling: Pulling):
    pulling.ask()
    cancel(pulling.pull, actor=pulling.ground.ada, reason="Not today.", now=pulling.now)

    pulling.round()

    assert pulling.jobs() == []
    assert pulling.pull.ended_at is not None


def test_the_end_of_the_plan_ends_it(pulling: Pulling):
    pulling.ask().round()
    Plan.objects.filter(pk=pulling.plan.pk).update(state="discarded")

    pulling.round().round()

    assert pulling.jobs() == []
    assert pulling.pull.ends_reason == "The plan is discarded and no longer needs its image."


def test_a_draft_that_goes_elsewhere_by_now_ends_it(pulling: Pulling):
    pulling.ask().round()
    Plan.objects.filter(pk=pulling.plan.pk).update(to_version="580.105.08")

    pulling.round().round()

    assert pulling.jobs() == []
    assert "Its target is now 580.105.08." in pulling.pull.ends_reason


def frozen(pulling: Pulling) -> str:
    cluster = pulling.ground.cluster
    Freeze.objects.create(cluster=cluster, by="bob", at=pulling.now, reason="quarter end")
    return "Cluster north is frozen by bob: quarter end."


def switched_off(pulling: Pulling) -> str:
    switch = {"metadata": {"name": "quarterdeck-stop"}, "data": {"reason": "incident"}}
    pulling.ground.store.create(CONFIG_MAP, switch, "quarterdeck")
    return "ConfigMap quarterdeck/quarterdeck-stop in the cluster stops everything: incident."


@pytest.mark.parametrize("forbid", [frozen, switched_off])
def test_while_everything_is_stopped_nothing_is_made(pulling: Pulling, forbid: Callable[[Pulling], str]):
    pulling.ask()

    sentence = forbid(pulling)
    pulling.round()

    assert pulling.jobs() == []
    assert pulling.pull.waiting_for == sentence
    assert pulling.row().intended_at is None


def test_without_the_right_it_says_what_to_grant_and_ends(pulling: Pulling, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise client.Forbidden('jobs.batch is forbidden: User "x" cannot create resource "jobs"')

    monkeypatch.setattr(client, "create_job", refuse)
    pulling.ask(nodes_each=3).round()

    assert pulling.pull.ended_at is not None
    assert "verbs: [create, delete]" in pulling.pull.ends_reason
    assert set(PullJob.objects.filter(pull=pulling.pull).values_list("outcome", flat=True)) == {"", "unknown"}


def test_a_403_that_is_no_missing_right_is_that_rows_alone(pulling: Pulling, monkeypatch: pytest.MonkeyPatch):
    create, said = client.create_job, 'jobs.batch "x" is forbidden: exceeded quota: jobs, requested: count/jobs.batch=1'

    def refuse_the_first(connection: client.Connection, namespace: str, job: dict[str, Any]) -> Any:
        if job["metadata"]["name"].endswith("-1"):
            raise client.Forbidden(said)
        return create(connection, namespace, job)

    monkeypatch.setattr(client, "create_job", refuse_the_first)
    pulling.ask(nodes_each=3).round()

    first, *others = PullJob.objects.filter(pull=pulling.pull)
    assert (first.outcome, first.said) == (PullOutcome.UNKNOWN, said)
    assert first.gone_at is not None
    assert all(row.made_at is not None for row in others)
    assert pulling.pull.ends_reason == ""


def test_one_that_is_refused_after_a_try_that_was_lost_is_still_looked_for(
    pulling: Pulling, monkeypatch: pytest.MonkeyPatch
):
    pulling.ask()
    for error in (client.Unreachable("It did not answer in time."), client.Forbidden("exceeded quota")):

        def fail(*_: object, error: client.ClusterError = error) -> None:
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(client, "create_job", fail)
            pulling.ground.clock.move(seconds=LANDED_BY.total_seconds())
            pulling.round()

    assert (pulling.row().outcome, pulling.row().gone_at) == (PullOutcome.UNKNOWN, None)
    assert pulling.pull.ended_at is None
    pulling.ground.clock.move(seconds=LANDED_BY.total_seconds())
    pulling.round()
    assert pulling.pull.ended_at is not None


@pytest.mark.parametrize("how", ["cancelled", "two hours", "plan"])
def test_what_was_not_through_at_the_end_says_so(pulling: Pulling, how: str):
    pulling.ask().round()
    pulling.play({"waiting": {"reason": "ContainerCreating"}})
    pulling.round()
    before = pulling.row().says

    if how == "cancelled":
        cancel(pulling.pull, actor=pulling.ground.ada, reason="Not today.", now=pulling.now)
    elif how == "plan":
        end_the_plan(pulling)
    else:
        pulling.ground.clock.move(hours=2)
    pulling.round()

    assert before == "The node is pulling the image."
    assert pulling.row().outcome == PullOutcome.UNKNOWN
    assert pulling.row().says == f"The pull on this node was not finished. {pulling.pull.ends_reason}"


def test_what_was_never_tried_stays_so_at_the_end(pulling: Pulling):
    pulling.ask()
    cancel(pulling.pull, actor=pulling.ground.ada, reason="Not today.", now=pulling.now)

    pulling.round()

    assert (pulling.row().outcome, pulling.row().says) == ("", "")


def test_an_image_that_was_pulled_just_before_the_end_counts(pulling: Pulling):
    pulling.ask().round()
    pulling.play(DONE, "Succeeded")
    cancel(pulling.pull, actor=pulling.ground.ada, reason="Not today.", now=pulling.now)

    pulling.round()

    assert pulling.row().outcome == PullOutcome.PULLED


def test_a_pod_of_another_job_of_its_name_proves_nothing(pulling: Pulling):
    pulling.ask().round()
    pulling.play(DONE, "Succeeded")
    name = f"{pulling.row().job_name}-x"
    (owner,) = pulling.ground.store.get(POD, name, NAMESPACE)["metadata"]["ownerReferences"]
    other = {"metadata": {"ownerReferences": [owner | {"uid": "of-the-job-that-was"}]}}
    pulling.ground.store.patch(POD, name, other, NAMESPACE, how="merge")

    pulling.round()

    assert pulling.row().outcome == ""


def test_a_round_lists_pods_once_and_events_only_where_something_fails(
    pulling: Pulling, monkeypatch: pytest.MonkeyPatch
):
    pulling.ask(nodes_each=3).round()
    asked: list[str] = []
    for name in ("list_pods", "list_warnings"):
        call = getattr(client, name)

        def counted(*given: Any, name: str = name, call: Any = call, **more: Any) -> Any:
            asked.append(name)
            return call(*given, **more)

        monkeypatch.setattr(client, name, counted)

    pulling.round()

    assert asked == ["list_pods", "list_warnings"]


def test_it_looks_soon_while_something_comes_or_goes_and_rarely_while_a_node_pulls(pulling: Pulling):
    def wait() -> timedelta:
        before = pulling.now
        pulling.round()
        return (pulling.pull.next_look_at or before) - before

    pulling.ask()
    made = wait()
    pulling.play({"waiting": {"reason": "ContainerCreating"}})
    pulls = wait()
    pulling.play(DONE, "Succeeded")
    goes = wait()

    assert (made, pulls, goes) == (IN_MOTION, LOOK_AGAIN, IN_MOTION)


def test_a_turn_that_was_lost_asks_for_no_job(pulling: Pulling, monkeypatch: pytest.MonkeyPatch):
    pulling.ask().round()
    mine = a_round(pulling)
    take_the_turn(pulling)
    monkeypatch.setattr(client, "get_job", lambda *_: pytest.fail("asked"))

    with pytest.raises(LostRace):
        observe_pull_jobs(mine)


def test_a_job_that_may_not_be_deleted_is_named_and_tried_again(pulling: Pulling, monkeypatch: pytest.MonkeyPatch):
    pulling.ask().round()
    pulling.play(DONE, "Succeeded")

    def refuse(*_: object) -> None:
        raise client.Forbidden("jobs.batch is forbidden.")

    with monkeypatch.context() as patched:
        patched.setattr(client, "delete_job", refuse)
        pulling.round()

    assert f"kubectl -n {NAMESPACE} delete job" in pulling.row().trouble
    assert pulling.pull.ended_at is None
    pulling.round()
    assert pulling.jobs() == []


def test_a_job_that_somebody_deleted_proves_nothing(pulling: Pulling):
    pulling.ask().round()
    pulling.ground.store.delete(JOB, pulling.row().job_name, NAMESPACE)

    pulling.round()

    assert pulling.row().outcome == PullOutcome.UNKNOWN
    assert pulling.pull.ended_at is not None


def test_another_cluster_at_the_address_is_not_taken_for_one_without_our_jobs(pulling: Pulling):
    """Z10."""
    pulling.ask().round()
    Cluster.objects.update(uid="of-the-cluster-that-was")
    pulling.ground.store.delete(JOB, pulling.row().job_name, NAMESPACE)

    pulling.round()

    assert "(kube-system" in pulling.pull.waiting_for
    assert pulling.row().outcome == ""


def test_a_request_that_may_still_land_is_waited_for(pulling: Pulling, monkeypatch: pytest.MonkeyPatch):
    pulling.ask()
    lose(pulling, monkeypatch)
    cancel(pulling.pull, actor=pulling.ground.ada, reason="Not today.", now=pulling.now)
    pulling.round()
    assert pulling.pull.ended_at is None

    pulling.ground.clock.move(seconds=LANDED_BY.total_seconds())
    pulling.round()

    assert pulling.pull.ended_at is not None


def test_the_minute_counts_from_the_newest_try(pulling: Pulling, monkeypatch: pytest.MonkeyPatch):
    pulling.ask()
    lose(pulling, monkeypatch)
    pulling.ground.clock.move(seconds=LANDED_BY.total_seconds())
    lose(pulling, monkeypatch)
    cancel(pulling.pull, actor=pulling.ground.ada, reason="Not today.", now=pulling.now)
    pulling.ground.clock.move(seconds=30)

    pulling.round()

    assert pulling.pull.ended_at is None


def a_round(pulling: Pulling) -> PullRound:
    pull = ImagePull.objects.select_related("plan__cluster").get(pk=pulling.pull.pk)
    assert pull.take_lease(owner="worker-1", now=pulling.now)
    return PullRound(pull, pulling.ground.connection, pulling.ground.clock)


def call_off(pulling: Pulling) -> None:
    pulling.pull.stop("Not today.", by="ada", now=pulling.now)


def take_the_turn(pulling: Pulling) -> None:
    ImagePull.objects.update(epoch=99)


def edit(pulling: Pulling) -> None:
    Plan.objects.update(to_version="580.105.08")


def end_the_plan(pulling: Pulling) -> None:
    Plan.objects.update(state="aborted")


def tell(pulling: Pulling) -> None:
    PullJob.objects.update(outcome="unknown")


@pytest.mark.parametrize("beside", [call_off, take_the_turn, edit, end_the_plan, tell])
def test_the_intent_loses_against_whoever_was_faster(pulling: Pulling, beside: Callable[[Pulling], None]):
    pulling.ask()
    mine, row = a_round(pulling), pulling.row()
    beside(pulling)

    with pytest.raises(LostRace):
        intend(mine, row, row.image)

    assert pulling.row().intended_at is None


def test_an_answer_loses_against_one_that_was_there_before(pulling: Pulling):
    pulling.ask().round()
    pulling.play(DONE, "Succeeded")
    mine, row = a_round(pulling), pulling.row()
    observe_pull_jobs(mine)
    PullJob.objects.update(outcome="failed")

    record_job_progress(mine, row)

    assert pulling.row().outcome == "failed"
    assert not pulling.plan.events.filter(to="image-pulled").exists()


def test_an_answer_of_a_worker_whose_turn_is_over_is_not_written(pulling: Pulling):
    pulling.ask().round()
    pulling.play(DONE, "Succeeded")
    mine, row = a_round(pulling), pulling.row()
    observe_pull_jobs(mine)
    take_the_turn(pulling)

    with pytest.raises(LostRace):
        record_job_progress(mine, row)

    assert pulling.row().outcome == ""


def test_two_workers_do_not_have_one_pull_at_once(pulling: Pulling):
    pulling.ask()
    one, other = (ImagePull.objects.get(pk=pulling.pull.pk) for _ in range(2))

    assert one.take_lease(owner="worker-1", now=pulling.now)
    assert not other.take_lease(owner="worker-2", now=pulling.now)


def test_it_does_not_end_while_a_job_may_be_there(pulling: Pulling):
    pulling.ask().round()
    mine = a_round(pulling)

    assert not mine.pull.end(now=pulling.now)
    assert ImagePull.objects.get().ended_at is None


def test_what_a_registry_says_is_bounded_and_without_secrets():
    said = redacted_line("GET https://ada:hunter2@registry.example/v2/?token=abcdef0123456789\n" + "x " * 2000)

    assert "hunter2" not in said
    assert "abcdef0123456789" not in said
    assert len(said) <= 500
    assert "\n" not in said


def test_a_container_that_its_kubelet_lost_proves_nothing():
    ended = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}
    pod = client_pod({"phase": "Failed", "containerStatuses": [{"name": "pull", "state": ended}]})

    assert pod_look(pod).has_run is False


def client_pod(status: dict[str, Any]) -> PodSeen:
    return msgspec.convert({"metadata": {"name": "x", "uid": "u"}, "status": status}, PodSeen)


def test_release_all_names_jobs_and_takes_them(pulling: Pulling, capsys: pytest.CaptureFixture[str]):
    pulling.ask().round()
    name = pulling.row().job_name

    call_command("release_all", "north", "--dry-run")
    said, there = capsys.readouterr().out, pulling.jobs()
    call_command("release_all", "north")

    assert f"Job {NAMESPACE}/{name}: pulls an image for {pulling.plan.mark}; would be deleted" in said
    assert len(there) == 1
    assert pulling.jobs() == []
    assert ImagePull.objects.get().ends_by == "release_all"
    assert AuditEntry.objects.filter(subject=pulling.plan.mark, verb="cancel-pull", actor="release_all").exists()
    assert pulling.plan.events.filter(to="pull-cancelled").exists()


def test_it_gives_up_after_two_hours(pulling: Pulling):
    pulling.ask().round()
    pulling.ground.clock.move(hours=2)

    pulling.round().round()

    assert pulling.jobs() == []
    assert pulling.pull.ended_at is not None
