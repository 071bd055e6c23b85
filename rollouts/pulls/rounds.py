"""One round of an image pull: look at its Jobs, delete those that are told, make those to come. Safe to stop anywhere.

The plan's own rounds know nothing of it. Each Job is a row before it is written; what was written is looked for by its
name, and a row is done with only when its Job and its pod were read back to be gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import transaction

from edges.moves import LostRace
from health.logs.redaction import redacted
from kube import client
from kube.structs import DaemonSetSeen, PodSeen
from kube.structs.events import EventSeen
from kube.structs.meta import find
from kube.structs.pod import Terminated
from rollouts.engine.live import stopped_in_cluster
from rollouts.engine.writer_lease import Forfeit, take_writer_lease
from rollouts.images.driver_image import image_for, system_of
from rollouts.images.job import AsTheDriver, is_ours, job_for, pods_for
from rollouts.images.progress import JobLook, PodLook, PullOutcome, Told, look
from rollouts.models import ImagePull, Plan, PullJob
from rollouts.models.moving import record_event
from rollouts.pulls.reading import PULLED_IN, pull_on_page
from rollouts.restraints import why_frozen

log = structlog.get_logger()

DRIVER_CONTAINER = "nvidia-driver-ctr"  # gpu-operator, manifests/state-driver/0500_daemonset.yaml
AT_ONCE = 5  # Jobs: the registry and its mirrors serve everybody else, too
LOOK_AGAIN = timedelta(seconds=10)  # a driver's image takes a node a minute or more
IN_MOTION = timedelta(seconds=2)  # a Job that has no pod yet, or one that goes
NOT_SOON = timedelta(seconds=10)
AFTER_A_BUG = timedelta(seconds=30)
LANDED_BY = timedelta(minutes=1)  # a request that we gave up may still reach the API server
GIVEN_UP_AFTER = timedelta(hours=2)
NEVER_SEEN = "ContainerStatusUnknown"  # what a kubelet says of a container that it may not have made (pkg/kubelet)
BY_ITSELF = "quarterdeck"
LONGEST = 500  # of what others say
# RBAC's own words (kubernetes, pkg/endpoints/handlers/responsewriters). Quotas and webhooks answer 403, too.
NO_RIGHT = 'cannot create resource "jobs"'


def run_pull(*, pull_id: int, owner: str, clock: Callable[[], datetime]) -> None:
    pull = ImagePull.objects.in_force().select_related("plan__cluster").filter(pk=pull_id).first()
    if pull is None or not pull.take_lease(owner=owner, now=clock()):
        return
    try:
        waiting_for, wait = _look_and_act(pull, clock=clock)
    except Exception as bug:
        because = f"Quarterdeck itself failed: {type(bug).__name__}. Nothing is made until it is mended."
        pull.end_lease(now=clock(), next_look_at=clock() + AFTER_A_BUG, waiting_for=because)
        raise
    now = clock()
    pull.end_lease(now=now, next_look_at=now + wait, waiting_for=waiting_for)


def _look_and_act(pull: ImagePull, *, clock: Callable[[], datetime]) -> tuple[str, timedelta]:
    """Why it does not go on, and when to look again."""
    cluster = pull.plan.cluster
    try:
        connection = client.connect(cluster.kubeconfig, cluster.context)
        try:
            return _Round(pull, connection, clock).go()
        finally:
            connection.close()
    except client.ClusterError as error:
        log.warning("an image pull does not go on", pull=pull.pk, cluster=cluster.name, error=str(error))
        wait = timedelta(seconds=error.retry_after_s or NOT_SOON.total_seconds())
        return f"{cluster.name}: {error}", wait
    except Forfeit as forfeit:
        return str(forfeit), NOT_SOON
    except LostRace as lost:
        return str(lost), IN_MOTION


@dataclass
class _Round:
    pull: ImagePull
    connection: client.Connection
    clock: Callable[[], datetime]
    may_write: bool = False
    is_in_motion: bool = False  # something comes or goes, so that the next look is worth it soon
    # What the cluster showed when the round began.
    seen_at: datetime | None = None
    jobs: dict[int, client.JobSeen | None] = field(default_factory=dict)  # by their rows
    pods: list[PodSeen] = field(default_factory=list)
    warnings: dict[str, list[EventSeen]] = field(default_factory=dict)  # by namespace

    def go(self) -> tuple[str, timedelta]:
        self._check_cluster()
        self._stop_what_is_over()
        self._see()
        self._learn_whether_it_ends()
        for row in self._rows().in_the_cluster().filter(outcome=""):
            self._look(row)
        self._learn_whether_it_ends()
        waiting_for = "" if self.pull.ends_because else self._make()
        if self.pull.ends_because:
            self._tell_what_was_not_through()
        for row in self._rows().in_the_cluster():
            if row.outcome or self.pull.ends_because:
                waiting_for = self._delete(row) or waiting_for
        self._end()
        return waiting_for, NOT_SOON if waiting_for else IN_MOTION if self.is_in_motion else LOOK_AGAIN

    def _learn_whether_it_ends(self) -> None:
        """Somebody may have called it off since."""
        self.pull.refresh_from_db(fields=["ends_because"])

    def _rows(self):
        return PullJob.objects.filter(pull=self.pull).select_related("pull").order_by("position")

    def _check_cluster(self) -> None:
        """Another one at the address has no Job of ours, which must not be taken for ours being gone (hazard Z10).

        :raises Forfeit: when it is so
        """
        cluster = self.pull.plan.cluster
        if (uid := client.kube_system_uid(self.connection)) != cluster.uid:
            raise Forfeit(f"The address of {cluster.name} leads to another cluster now (kube-system {uid}).")

    def _stop_what_is_over(self) -> None:
        plan, now = Plan.objects.get(pk=self.pull.plan_id), self.clock()
        because = ""
        if plan.state not in PULLED_IN:
            because = f"The plan is {plan.state.replace('-', ' ')}: its image is not needed any more."
        elif plan.to_version != self.pull.to_version:
            because = f"The draft was edited: it goes to {plan.to_version} now."
        elif now - self.pull.asked_at >= GIVEN_UP_AFTER:
            because = "It was given up: two hours are enough for any image."
        if because:
            self.pull.stop(because, by=BY_ITSELF, now=now)

    # Looking

    def _see(self) -> None:
        """Jobs first: what one that is gone had made meanwhile is in the list of pods, which comes after."""
        rows = list(self._rows().in_the_cluster())
        self.seen_at = self.clock()
        for row in rows:
            self.pull.keep_lease(now=self.clock())
            self.jobs[row.pk] = client.get_job(self.connection, row.namespace, row.job_name)
        for namespace in sorted({row.namespace for row in rows}):
            self.pull.keep_lease(now=self.clock())
            selector = pods_for(self.pull.plan.mark)
            self.pods += client.list_pods(self.connection, namespace=namespace, label_selector=selector)

    def _look(self, row: PullJob) -> None:
        if row.pk not in self.jobs:
            return
        job, now = self.jobs[row.pk], self.clock()
        if job is None:
            if row.made_at is not None and not self.pull.ends_because:
                told = Told("Its Job was deleted by somebody else before it was through.", outcome=PullOutcome.UNKNOWN)
                self._write(row, told, now=now)
            return
        if not is_ours(row.wanted, job.labels, job.annotations):
            says = f"There is another Job {row.job_name} in {row.namespace}, which is not ours: delete or rename it."
            self._write(row, Told(says, outcome=PullOutcome.UNKNOWN), now=now, gone_at=now)
            return
        pod = self._pod_of(row, job)
        self.is_in_motion |= pod is None
        about = ("Pod", pod.name) if pod else ("Job", job.name)
        failed = find((job.status.conditions if job.status else None), "Failed")
        is_failed = failed is not None and failed.status == "True"
        seen = pod_look(pod) if pod else None
        is_plain = seen is not None and not seen.waits
        events = [] if is_plain else self._events_about(row.namespace, *about)
        told = look(
            JobLook(
                image=row.image,
                system=row.system,
                made_at=row.made_at or now,
                failed=(failed.reason or "Failed") if failed and is_failed else "",
                failed_message=(failed.message or "") if failed and is_failed else "",
                pod=seen,
                events=[(event.reason or "", event.message or "") for event in events],
                failing_since=row.failing_since,
            ),
            now=now,
        )
        self._write(row, told, now=now, made_at=row.made_at or now)

    def _pods_of(self, row: PullJob) -> list[PodSeen]:
        """Its labels say so, and the time of asking: whichever Job made them."""
        return [
            pod
            for pod in self.pods
            if pod.namespace == row.namespace and is_ours(row.wanted, pod.labels, pod.annotations)
        ]

    def _pod_of(self, row: PullJob, job: client.JobSeen) -> PodSeen | None:
        """Made by this very Job, the newest: it makes another one where its first was taken from it."""
        made = [pod for pod in self._pods_of(row) if pod.metadata.owner and pod.metadata.owner.uid == job.uid]
        return max(made, key=lambda pod: str(pod.metadata.creation_timestamp or ""), default=None)

    def _events_about(self, namespace: str, kind: str, name: str) -> list[EventSeen]:
        """One list a round, and none while nothing fails."""
        if namespace not in self.warnings:
            self.pull.keep_lease(now=self.clock())
            self.warnings[namespace] = client.list_warnings(self.connection, namespace)
        return [event for event in self.warnings[namespace] if (event.about.kind, event.about.name) == (kind, name)]

    def _write(
        self,
        row: PullJob,
        told: Told,
        *,
        now: datetime,
        made_at: datetime | None = None,
        gone_at: datetime | None = None,
    ) -> None:
        outcome = told.outcome.value if told.outcome else ""
        columns: dict[str, Any] = {
            "says": told.says[:1000],
            "said": bounded(told.said),
            "took": told.took,
            "outcome": outcome,
        }
        columns["told_at"] = now if outcome else None
        columns["failing_since"] = (row.failing_since or now) if told.is_failing else None
        columns |= {"made_at": made_at} if made_at else {}
        columns |= {"gone_at": gone_at} if gone_at else {}
        with transaction.atomic():
            self.pull.keep_lease(now=now)
            if PullJob.objects.filter(pk=row.pk, outcome="").update(**columns) and outcome:
                because = f"{row.node_name}, {row.image}: {told.says}"
                self._tell(f"image-{outcome}", because, now=now)

    def _tell(self, to: str, because: str, *, now: datetime) -> None:
        record_event(plan=self.pull.plan, what="note", was="", to=to, now=now, actor="engine", because=because)

    # Making

    def _make(self) -> str:
        """Why no more are made now. Blank: as many as may be at once, or all."""
        if not self._rows().to_come().exists():
            return ""
        if because := stopped_in_cluster(self.pull.plan, self.connection):
            return because
        room = AT_ONCE - self._rows().in_the_cluster().filter(outcome="", made_at__isnull=False).count()
        why_not = ""
        for row in self._rows().to_come():
            if room <= 0 or self.pull.ends_because:
                return why_not
            if said := self._make_one(row):
                why_not = said
            else:
                room -= 1
        return why_not

    def _make_one(self, row: PullJob) -> str:
        """Why it is not made now. Blank: it is, or it will never be, and its row says why."""
        if because := why_frozen(self.pull.plan, [row.node_uid], now=self.clock()):
            return because
        daemonset = client.get_daemonset(self.connection, row.namespace, row.daemonset_name)
        image = self._image(row, daemonset)
        if daemonset is None or not image:
            says = f"DaemonSet {row.daemonset_name} no longer tells which image the operator would use."
            self._write(row, Told(says, outcome=PullOutcome.UNKNOWN), now=self.clock())
            return ""
        like = self._like_the_driver(row, daemonset)
        if like is None:
            says = f"{row.node_name} has no driver pod that tells with whose pull secrets its image is pulled."
            self._write(row, Told(says, outcome=PullOutcome.UNKNOWN), now=self.clock())
            return ""
        self._take_writer_lease()
        if because := stopped_in_cluster(self.pull.plan, self.connection):
            return because
        if because := self._intend(row, image):
            return because
        self.is_in_motion = True
        try:
            client.create_job(self.connection, row.namespace, job_for(row.wanted, like))
        except client.Conflict:
            pass  # Ours of an earlier try, or somebody else's: the next look at its labels tells which.
        except (client.Forbidden, client.Refused) as refusal:
            self._never_made(row, str(refusal))
            if isinstance(refusal, client.Forbidden) and NO_RIGHT in str(refusal):
                self.pull.stop(_grant(row.namespace), by=BY_ITSELF, now=self.clock())
                self._learn_whether_it_ends()
        else:
            now = self.clock()
            self._write(row, Told("Its Job has no pod yet."), now=now, made_at=now)
        return ""

    def _image(self, row: PullJob, daemonset: DaemonSetSeen | None) -> str:
        """As the API server has it now. Blank: nobody can tell."""
        if daemonset is None or daemonset.uid != row.daemonset_uid:
            return ""
        containers = daemonset.template.spec.containers or []
        current = next((each.image or "" for each in containers if each.name == DRIVER_CONTAINER), "")
        plan = self.pull.plan
        return image_for(current, from_version=plan.from_version, to_version=self.pull.to_version)

    def _like_the_driver(self, row: PullJob, daemonset: DaemonSetSeen) -> AsTheDriver | None:
        """None: no driver pod on the node tells. Its template does not: a service account may have added to it."""
        spec = self._spec_of_driver_pod(row)
        if spec is None:
            return None
        secrets = [str(each["name"]) for each in spec.get("imagePullSecrets") or () if each.get("name")]
        tolerations = [
            {"key": each.key, "operator": each.operator, "value": each.value, "effect": each.effect}
            for each in daemonset.template.spec.tolerations or ()
        ]
        said = [{name: value for name, value in each.items() if value} for each in tolerations]
        return AsTheDriver(secrets, said, daemonset.pod_labels, str(spec.get("serviceAccountName") or ""))

    def _spec_of_driver_pod(self, row: PullJob) -> dict[str, Any] | None:
        """Of the one that was seen when it was asked, or of the one that is in its place by now."""
        try:
            return client.get_pod_spec(self.connection, row.namespace, row.driver_pod)
        except client.Absent:
            found = client.list_pods_on(self.connection, row.node_name, namespace=row.namespace)
        drivers = [pod for pod in found if pod.metadata.owner and pod.metadata.owner.uid == row.daemonset_uid]
        newest = max(drivers, key=lambda pod: str(pod.metadata.creation_timestamp or ""), default=None)
        if newest is None:
            return None
        try:
            return client.get_pod_spec(self.connection, row.namespace, newest.name)
        except client.Absent:
            return None

    def _intend(self, row: PullJob, image: str) -> str:
        """Record that it is made, where nothing forbids it at this moment. Blank: it is recorded.

        :raises LostRace: when the turn is another worker's, somebody called it off, or the plan is another one by now
        """
        now = self.clock()
        with transaction.atomic():
            self.pull.keep_lease(now=now)
            if not ImagePull.objects.filter(pk=self.pull.pk, ends_because="").exists():
                raise LostRace("It was called off.")
            plan = Plan.objects.select_for_update(no_key=True).get(pk=self.pull.plan_id)
            if plan.state not in PULLED_IN or plan.to_version != self.pull.to_version:
                raise LostRace("The plan is not what its image was asked for.")
            if because := why_frozen(plan, [row.node_uid], now=now):
                return because
            system = system_of(image, self.pull.to_version)[:128]
            mine = PullJob.objects.to_come().filter(pk=row.pk)
            if not mine.update(intended_at=now, image=image[:500], system=system):
                raise LostRace(f"The Job for {row.node_name} is told already.")
        row.image, row.system = image[:500], system
        return ""

    def _never_made(self, row: PullJob, words: str) -> None:
        """The API server said no: nothing of it is there, unless an earlier try was lost that may still land."""
        now = self.clock()
        told = Told("The API server does not take its Job.", words, PullOutcome.UNKNOWN)
        self._write(row, told, now=now, gone_at=None if row.intended_at else now)

    def _take_writer_lease(self) -> None:
        if not self.may_write:
            take_writer_lease(self.connection, self.pull.plan.cluster, now=self.clock())
            self.may_write = True

    # Leaving nothing

    def _tell_what_was_not_through(self) -> None:
        told = Told(f"It was not through when this ended. {self.pull.ends_because}", outcome=PullOutcome.UNKNOWN)
        for row in self._rows().in_the_cluster().filter(outcome=""):
            self._write(row, told, now=self.clock())

    def _delete(self, row: PullJob) -> str:
        """Why it cannot be. Blank: it is gone, or on its way."""
        self.is_in_motion = True
        if row.pk not in self.jobs or self.seen_at is None:
            return ""  # It was made in this round: the next one sees it.
        job = self.jobs[row.pk]
        if job is None or not is_ours(row.wanted, job.labels, job.annotations):
            was_lost_at = row.intended_at or self.seen_at
            is_settled = row.made_at is not None or self.seen_at - was_lost_at >= LANDED_BY
            if is_settled and not self._pods_of(row):
                PullJob.objects.filter(pk=row.pk, gone_at=None).update(gone_at=self.clock(), trouble="")
            return ""
        if job.metadata.deletion_timestamp is not None:
            return ""
        self._take_writer_lease()
        self.pull.keep_lease(now=self.clock())
        try:
            client.delete_job(self.connection, job)
        except (client.Absent, client.Conflict):
            return ""  # It is gone, or another by now: the next look tells.
        except client.Forbidden as refusal:
            by_hand = f"kubectl -n {row.namespace} delete job {row.job_name}"
            PullJob.objects.filter(pk=row.pk).update(
                trouble=bounded(f"It may not be deleted: {refusal} By hand: {by_hand}")
            )
            return f"A Job may not be deleted. By hand: {by_hand}"
        return ""

    def _end(self) -> None:
        rows = list(self._rows())
        if any(row.intended_at and not row.gone_at for row in rows):
            return
        if not self.pull.ends_because and any(not row.outcome for row in rows):
            return
        now = self.clock()
        with transaction.atomic():
            if self.pull.end(now=now):
                self.pull.refresh_from_db()
                self._tell("pull-ended", pull_on_page(self.pull).sentence, now=now)


def bounded(words: str) -> str:
    """In one line, and without what looks like a secret."""
    return redacted(" ".join(words[: 4 * LONGEST].split()))[:LONGEST]


def pod_look(pod: PodSeen) -> PodLook:
    statuses = pod.status.container_statuses or []
    state = statuses[0].state if statuses else None
    ended = state.terminated if state else None
    waiting = state.waiting if state else None
    scheduled = pod.scheduled
    is_homeless = scheduled is not None and scheduled.status == "False"
    return PodLook(
        phase=pod.status.phase,
        reason=pod.status.reason or "",
        message=pod.status.message or "",
        unscheduled=(scheduled.message or scheduled.reason or "no reason given") if scheduled and is_homeless else "",
        begun_at=pod.status.start_time,
        waits=(waiting.reason or "") if waiting and waiting.reason != "ContainerCreating" else "",
        waits_message=(waiting.message or "") if waiting else "",
        has_run=_has_run(ended) or bool(state and state.running),
        ran_at=ended.started_at if ended else None,
    )


def _has_run(ended: Terminated | None) -> bool:
    return ended is not None and ended.started_at is not None and ended.reason != NEVER_SEEN


def _grant(namespace: str) -> str:
    return (
        f"Quarterdeck may not make Jobs in {namespace}, so that no image can be pulled beforehand. Grant it there: "
        "the rule for jobs (apiGroups: [batch], verbs: [create, delete]) of deploy/rbac/quarterdeck.yaml. "
        "All else goes on."
    )
