"""The owners of work on a drained node, who are asked once to suspend or end it before it is evicted (lifecycle R24).

An owner is named by the annotation `quarterdeck.io/contact` of a pod, else by `QUARTERDECK_OWNER_LABEL`; a namespace
answers for pods that name nobody. The request is a domain event, so it goes where the routes of notifications send it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction

from fleet.models import Workload
from kube import client
from kube.structs import Seen
from operations.models.operation import ENGINE, LONGEST_REASON, OWNERS_ASKED, PODS_BLOCK
from operations.steps.base import NodeWork
from operations.steps.evictions import Evictions, PodOnNode

CONTACT = "quarterdeck.io/contact"  # annotation of a pod or its namespace: whom to ask before its work is lost
LONGEST_CONTACT = 200
KEY = "owner_requests"  # in the progress of a node
NOT_READ, NOBODY = "not known: the namespace was not read", "nobody is named"
SUSPENDED, GONE, NO_ANSWER = "suspended", "its pods are gone", "none in time"
EVICTED = "none: this drain evicted its pods"

OwnerRequests = dict[str, dict[str, str]]  # by job: owner, asked_at, until, then, answer


@dataclass(frozen=True)
class OwnerRequest:
    """One kind of request to owners."""

    event: str  # kind of its domain event
    text: str  # with the names `jobs`, `node` and `until`
    then: str  # what happens at `until`

    def text_of(self, asked: OwnerRequests, *, node: str, until: datetime) -> str:
        jobs = ", ".join(f"{job} (owner: {its['owner']})" for job, its in asked.items())
        return self.text.format(jobs=jobs, node=node, until=f"{until:%Y-%m-%d %H:%M} UTC")


SUSPEND = OwnerRequest(
    OWNERS_ASKED, "Please suspend or end by {until}: {jobs}. After that, a drain evicts the pods.", "pods are evicted"
)
UNBLOCK = OwnerRequest(
    PODS_BLOCK,
    "Pods on {node} block its drain: {jobs}. The drain tries again until {until}, then it fails. Nothing is forced.",
    "the drain fails",
)


def named_by(seen: Seen) -> str:
    """Returns whom an object names as its owner. Blank: nobody."""
    return (seen.annotations.get(CONTACT) or seen.labels.get(settings.OWNER_LABEL, ""))[:LONGEST_CONTACT]


def contacts_of(pods: Sequence[PodOnNode], work: NodeWork) -> dict[str, str]:
    """Returns the contacts by pod, blank where nobody is named. A pod is absent if its namespace was not read.

    Costs one request for each namespace, and none after an error: the evictions of the round were asked for already,
    and its result must not be lost. The next round reads the rest.
    """
    by_namespace: dict[str, str] = {}
    for namespace in dict.fromkeys(pod.namespace for pod in pods if not pod.contact):
        try:
            found = client.get_namespace(work.connection, namespace)
        except client.Forbidden:
            continue
        except client.ClusterError:
            break
        by_namespace[namespace] = named_by(found) if found else ""
    known = {pod.title: pod.contact or by_namespace.get(pod.namespace) for pod in pods}
    return {title: contact for title, contact in known.items() if contact is not None}


def ask_owners(work: NodeWork, pods: Sequence[PodOnNode], request: OwnerRequest, *, until: datetime) -> None:
    """Asks the owners of jobs that this operation has not asked yet, and records it in the progress of the node.

    The events and the record are one transaction under the lease. The events also keep a job from being asked again by
    another node, or by a retry, whose progress is empty.

    :raises LostRace: when the guard forbids it
    """
    own = work.node.progress.get(KEY, {})
    by_job = {job: pod for pod in reversed(pods) if (job := _job_of(pod, work)) not in own}
    if not by_job:
        return
    before: OwnerRequests = {}
    for facts in work.operation.owner_events.values_list("facts", flat=True):
        before |= facts.get("jobs", {})
    now = work.clock()
    new = {job: pod for job, pod in by_job.items() if job not in before}
    contacts = contacts_of(list(new.values()), work)
    asked = {
        job: {
            "owner": contacts.get(pod.title, NOT_READ) or NOBODY, "asked_at": now.isoformat(),
            "until": until.isoformat(), "then": request.then, "answer": "",
        }
        for job, pod in new.items()
    }  # fmt: skip
    work.guard()
    with transaction.atomic():
        work.operation.keep_lease(now=now)
        known = {job: before[job] for job in by_job if job in before}
        work.node.note(work.node.reason, progress={**work.node.progress, KEY: {**own, **known, **asked}})
        for jobs in _messages(asked, request, node=work.node.node_name, until=until):
            reason = request.text_of(jobs, node=work.node.node_name, until=until)
            work.operation.write_event(request.event, now=now, actor=ENGINE, reason=reason, jobs=jobs)


def _messages(asked: OwnerRequests, request: OwnerRequest, *, node: str, until: datetime) -> Iterator[OwnerRequests]:
    """Yields the jobs of each message. A message names all of its jobs, and receivers cut long ones."""
    jobs: OwnerRequests = {}
    for job, its in asked.items():
        if jobs and len(request.text_of({**jobs, job: its}, node=node, until=until)) > LONGEST_REASON:
            yield jobs
            jobs = {}
        jobs[job] = its
    if jobs:
        yield jobs


def answers_of(
    work: NodeWork, evictions: Evictions, suspended: Collection[str] = (), evicted: Collection[str] = ()
) -> dict[str, OwnerRequests]:
    """Returns the requests with the answers so far, as progress of the node. Empty: nobody was asked.

    `suspended` and `evicted`: UIDs of pods whose job is suspended, and of those that this round evicted.
    """
    asked: OwnerRequests = work.node.progress.get(KEY, {})
    left, keeping = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for pod in (*evictions.to_evict, *evictions.terminating, *evictions.stuck):
        left[_job_of(pod, work)].add(pod.uid)
    for pod in (*evictions.to_evict, *evictions.stuck):
        keeping[_job_of(pod, work)].add(pod.uid)

    def answer(job: str, its: Mapping[str, str]) -> str:
        if not left[job].isdisjoint(suspended):
            return SUSPENDED
        if work.clock() >= datetime.fromisoformat(its["until"]):
            return NO_ANSWER
        if keeping[job] and keeping[job] <= set(evicted):
            return EVICTED
        return "" if left[job] else GONE

    found: OwnerRequests = {job: {**its, "answer": its["answer"] or answer(job, its)} for job, its in asked.items()}
    return {KEY: found} if found else {}


def suspended_pods(work: NodeWork, pods: Sequence[PodOnNode]) -> frozenset[str]:
    """Returns the UIDs of pods whose Job is suspended. A suspended JobSet suspends its Jobs. One query with any."""
    of_jobs = {(pod.namespace, pod.owner) for pod in pods if pod.owner_kind == "Job"}
    if not of_jobs:
        return frozenset()
    jobs = Workload.objects.filter(
        cluster=work.operation.cluster_id, kind="Job", name__in={name for _, name in of_jobs}
    )
    rows = jobs.filter(suspended_pods__isnull=False)
    suspended = set(rows.values_list("namespace", "name"))
    return frozenset(pod.uid for pod in pods if (pod.namespace, pod.owner) in suspended and pod.owner_kind == "Job")


def _job_of(pod: PodOnNode, work: NodeWork) -> str:
    """Returns the job of a pod, as the preview names it: the topmost owner, if it is known."""
    jobs = work.beside.jobs.get(work.node.node_name, {})
    whole = f"{pod.owner_kind} {pod.namespace}/{pod.owner}" if pod.owner_kind else f"Pod {pod.title}"
    return jobs.get((pod.namespace, pod.name), whole)
