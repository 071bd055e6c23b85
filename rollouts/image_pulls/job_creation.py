"""Creates the next Jobs: the row first, then the write."""

from typing import Any

from django.db import transaction

from edges.transition_errors import LostRace
from gpu.driver_images import image_for, system_of
from kube import client
from kube.structs import DaemonSetSeen
from operations.test_jobs.pull_job import like_driver, pull_job_for
from operations.test_jobs.pull_progress import PullOutcome, PullProgress
from rollouts.engine.live_state import stopped_in_cluster
from rollouts.image_pulls.base import BY_ITSELF, PullRound
from rollouts.image_pulls.latest_pulls import PULLED_IN
from rollouts.models import ImagePull, Plan, PullJob
from rollouts.queries.restraints import why_frozen

DRIVER_CONTAINER = "nvidia-driver-ctr"  # gpu-operator, manifests/state-driver/0500_daemonset.yaml
AT_ONCE = 5  # Jobs: the registry and its mirrors serve everybody else, too
# RBAC's own words (kubernetes, pkg/endpoints/handlers/responsewriters). Quotas and webhooks answer 403, too.
NO_RIGHT = 'cannot create resource "jobs"'


def make(pull_round: PullRound) -> str:
    """Creates Jobs, and returns why some are missing; empty means that the limit is reached or all exist."""
    if not pull_round.rows().to_come().exists():
        return ""
    if reason := stopped_in_cluster(pull_round.pull.plan, pull_round.connection):
        return reason
    room = AT_ONCE - pull_round.rows().in_the_cluster().filter(outcome="", made_at__isnull=False).count()
    why_not = ""
    for row in pull_round.rows().to_come():
        if room <= 0 or pull_round.pull.ends_reason:
            return why_not
        if pull_round.may_still_land(row):  # beside another try it would be made once more, after the end of all
            why_not, room = _unknown_creation_sentence(row), room - 1
        elif said := _make_one(pull_round, row):
            why_not = said
        else:
            room -= 1
    return why_not


def _unknown_creation_sentence(row: PullJob) -> str:
    return (
        f"It is unknown whether the Job for {row.node_name} was created. Quarterdeck tries again a minute after "
        "the last try."
    )


def _make_one(pull_round: PullRound, row: PullJob) -> str:
    """Creates one Job, and returns why not; empty if it exists or its row has the final reason."""
    if reason := why_frozen(pull_round.pull.plan, [row.node_uid], now=pull_round.clock()):
        return reason
    daemonset = client.get_daemonset(pull_round.connection, row.namespace, row.daemonset_name)
    image = _image(pull_round, row, daemonset)
    if daemonset is None or not image:
        says = f"DaemonSet {row.daemonset_name} no longer shows the image that the operator would use."
        pull_round.write(row, PullProgress(says, outcome=PullOutcome.UNKNOWN), now=pull_round.clock())
        return ""
    spec = _spec_of_driver_pod(pull_round, row)
    if spec is None:
        says = f"{row.node_name} has no driver pod, so the pull secrets are unknown."
        pull_round.write(row, PullProgress(says, outcome=PullOutcome.UNKNOWN), now=pull_round.clock())
        return ""
    pull_round.take_writer_lease()
    if reason := stopped_in_cluster(pull_round.pull.plan, pull_round.connection):
        return reason
    if reason := intend(pull_round, row, image):
        return reason
    pull_round.is_in_motion = True
    try:
        client.create_job(
            pull_round.connection,
            row.namespace,
            pull_job_for(row.wanted, row.image, like_driver(daemonset.template, spec)),
        )
    except client.Conflict:
        pass  # Ours of an earlier try, or somebody else's: the next look at its labels tells which.
    except (client.Forbidden, client.Refused) as refusal:
        _never_made(pull_round, row, str(refusal))
        if isinstance(refusal, client.Forbidden) and NO_RIGHT in str(refusal):
            pull_round.pull.stop(_grant(row.namespace), by=BY_ITSELF, now=pull_round.clock())
            pull_round.learn_whether_it_ends()
    else:
        now = pull_round.clock()
        pull_round.write(row, PullProgress("The Job has no pod yet."), now=now, made_at=now)
    return ""


def _image(pull_round: PullRound, row: PullJob, daemonset: DaemonSetSeen | None) -> str:
    if daemonset is None or daemonset.uid != row.daemonset_uid:
        return ""
    containers = daemonset.template.spec.containers or []
    current = next((each.image or "" for each in containers if each.name == DRIVER_CONTAINER), "")
    plan = pull_round.pull.plan
    return image_for(current, from_version=plan.from_version, to_version=pull_round.pull.to_version)


def _spec_of_driver_pod(pull_round: PullRound, row: PullJob) -> dict[str, Any] | None:
    try:
        return client.get_pod_spec(pull_round.connection, row.namespace, row.driver_pod)
    except client.Absent:
        found = client.list_pods_on(pull_round.connection, row.node_name, namespace=row.namespace)
    drivers = [pod for pod in found if pod.metadata.owner and pod.metadata.owner.uid == row.daemonset_uid]
    newest = max(drivers, key=lambda pod: str(pod.metadata.creation_timestamp or ""), default=None)
    if newest is None:
        return None
    try:
        return client.get_pod_spec(pull_round.connection, row.namespace, newest.name)
    except client.Absent:
        return None


def intend(pull_round: PullRound, row: PullJob, image: str) -> str:
    """Records the Job if nothing forbids it now, and returns the reason otherwise.

    :raises LostRace: when another worker has the turn, the pull was cancelled, or the plan has changed
    """
    now = pull_round.clock()
    with transaction.atomic():
        pull_round.pull.keep_lease(now=now)
        if not ImagePull.objects.filter(pk=pull_round.pull.pk, ends_reason="").exists():
            raise LostRace("It was called off.")
        plan = Plan.objects.select_for_update(no_key=True).get(pk=pull_round.pull.plan_id)
        if plan.state not in PULLED_IN or plan.to_version != pull_round.pull.to_version:
            raise LostRace("The plan has changed since the image was requested.")
        if reason := why_frozen(plan, [row.node_uid], now=now):
            return reason
        system = system_of(image, pull_round.pull.to_version)[:128]
        mine = PullJob.objects.to_come().filter(pk=row.pk)
        if not mine.update(intended_at=now, image=image[:500], system=system):
            raise LostRace(f"The result of the Job for {row.node_name} is already recorded.")
    row.image, row.system = image[:500], system
    return ""


def _never_made(pull_round: PullRound, row: PullJob, words: str) -> None:
    """Records that the API server refused the Job, unless an earlier request may still arrive."""
    now = pull_round.clock()
    told = PullProgress("The API server rejects the Job.", words, PullOutcome.UNKNOWN)
    pull_round.write(row, told, now=now, gone_at=None if row.intended_at else now)


def _grant(namespace: str) -> str:
    return (
        f"Quarterdeck may not create Jobs in {namespace}, so no image can be pulled beforehand. Grant the rule "
        "for jobs there (apiGroups: [batch], verbs: [create, delete]), as in deploy/rbac/quarterdeck.yaml. "
        "Everything else continues."
    )
