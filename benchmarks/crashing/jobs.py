"""The Job controller, the garbage collector and the kubelets that run our Jobs, as small as they can be.

A step is one reconcile of each: a Job makes its pod, a pod goes one state on, and a pod whose Job is gone goes.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from simulator.actors.objects import Obj, is_terminating, name, owners, spec, status, uid
from simulator.actors.replicaset import pod_from
from simulator.clock import stamp
from simulator.kinds import JOB, POD
from simulator.store import Store

NAMESPACE = "gpu-operator"
NOT_FOUND = 'failed to pull and unpack image "driver": failed to resolve reference "driver": driver: not found'
NO_ANSWER = 'failed to do request: Head "https://nvcr.io/v2/": dial tcp: lookup nvcr.io: no such host'
NO_ROOM = "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't match Pod's node affinity/selector."


class Fate(StrEnum):
    """What becomes of the pods of Jobs."""

    PULLED = "pulled"  # and its container ends with 0
    CRASHED = "crashed"  # its container ends with 1
    NOT_FOUND = "not found"  # the registry says no, for good
    NO_ANSWER = "no answer"  # the registry is not reached, try after try
    NO_ROOM = "no room"  # no node takes the pod
    NO_POD = "no pod"  # the controller makes none


@dataclass
class Jobs:
    store: Store
    fate: Fate = Fate.PULLED

    def step(self) -> None:
        jobs = {uid(job): job for job in self.store.list(JOB, NAMESPACE)[0]}
        pods = {owners(pod)[0]["uid"]: pod for pod in self.store.list(POD, NAMESPACE)[0] if _is_of_a_job(pod)}
        for owner, pod in pods.items():
            if owner not in jobs:
                self.store.delete(POD, name(pod), NAMESPACE, grace_s=0)
            elif status(pod).get("phase") not in {"Succeeded", "Failed"}:
                self._go_on(pod, jobs[owner])
        for job_uid in jobs.keys() - pods.keys():
            if self.fate is not Fate.NO_POD and not is_terminating(jobs[job_uid]):
                pod = pod_from(jobs[job_uid], api_version="batch/v1", kind="Job")
                if self.fate is not Fate.NO_ROOM and "affinity" in spec(pod):  # somebody else's Job names no node
                    pod["spec"]["nodeName"] = node_of(jobs[job_uid])
                self.store.create(POD, pod, NAMESPACE)

    def ended(self) -> list[Obj]:
        """Returns the Jobs that completed or failed."""
        return [job for job in self.store.list(JOB, NAMESPACE)[0] if status(job).get("conditions")]

    def has_passed(self, job: Obj) -> bool:
        return any(each["type"] == "Complete" for each in status(job)["conditions"])

    def _go_on(self, pod: Obj, job: Obj) -> None:
        now = stamp(self.store.clock.now())
        if self.fate is Fate.NO_ROOM:
            unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_ROOM}
            self._tell(pod, {"conditions": [unscheduled]})
        elif "startTime" not in status(pod):
            self._tell(pod, {"startTime": now, **_container({"waiting": {"reason": "ContainerCreating"}})})
        elif self.fate in {Fate.PULLED, Fate.CRASHED}:
            is_well = self.fate is Fate.PULLED
            ended = {"exitCode": 0 if is_well else 1, "reason": "Completed" if is_well else "Error"}
            ended |= {"startedAt": now, "finishedAt": now}
            phase, condition = ("Succeeded", "Complete") if is_well else ("Failed", "Failed")
            self._tell(pod, {"phase": phase, **_container({"terminated": ended})})
            done = {"status": {"conditions": [{"type": condition, "status": "True"}], phase.lower(): 1}}
            self.store.patch(JOB, name(job), done, NAMESPACE, how="merge", subresource="status")
        else:
            says = NOT_FOUND if self.fate is Fate.NOT_FOUND else NO_ANSWER
            self._tell(pod, _container({"waiting": {"reason": "ErrImagePull", "message": says}}))

    def _tell(self, pod: Obj, seen: dict[str, Any]) -> None:
        body = {"status": {"phase": "Pending", **seen}}
        self.store.patch(POD, name(pod), body, NAMESPACE, how="merge", subresource="status")


def node_of(job: Obj) -> str:
    """Returns the only node on which the pod of a Job of ours may start."""
    terms = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    term = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
    return str(term["matchFields"][0]["values"][0])


def _is_of_a_job(pod: Obj) -> bool:
    return bool(owners(pod)) and owners(pod)[0]["kind"] == "Job"


def _container(state: dict[str, Any]) -> dict[str, Any]:
    container = {"name": "pull", "image": "driver", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    return {"containerStatuses": [container]}
