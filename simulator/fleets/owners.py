"""What owns tenants' pods, with the status that it has once all of them run; and the pods themselves."""

from dataclasses import dataclass
from typing import Any

from simulator.actors.deployment import replica_set_of
from simulator.actors.kubelet.tenant import RUNTIME_ANNOTATION
from simulator.actors.replicaset import pod_from
from simulator.actors.stateful_set import pod_of
from simulator.fleets.tenants import Owner, Workload, replica_set
from simulator.kinds import DEPLOYMENT, JOB, REPLICA_SET, STATEFUL_SET, Kind

Obj = dict[str, Any]
MONTH_S = 30 * 86_400
KINDS: dict[Owner, Kind] = {
    Owner.REPLICA_SET: REPLICA_SET,
    Owner.DEPLOYMENT: DEPLOYMENT,
    Owner.STATEFUL_SET: STATEFUL_SET,
    Owner.JOB: JOB,
}


@dataclass(frozen=True, slots=True)
class Owned:
    """A stored owner of pods, and what it is an owner as."""

    obj: Obj
    owner: Owner

    def pod(self, ordinal: int) -> Obj:
        """A pod of a StatefulSet is named; others are named when they are stored."""
        if self.owner is Owner.STATEFUL_SET:
            return pod_of(self.obj, ordinal)
        if self.owner is Owner.JOB:
            return pod_from(self.obj, api_version="batch/v1", kind="Job")
        return pod_from(self.obj, api_version="apps/v1", kind="ReplicaSet")


def owner_of(workload: Workload) -> Obj:
    """As its author writes it."""
    made = replica_set(workload)
    match workload.owner:
        case Owner.JOB:
            return _job(made, workload)
        case Owner.STATEFUL_SET:
            extra = {"serviceName": workload.name, "podManagementPolicy": "Parallel"}
            return {**made, "kind": "StatefulSet", "spec": {**made["spec"], **extra}}
        case Owner.DEPLOYMENT:
            return {**made, "kind": "Deployment"}
    return made


def replica_set_under(deployment: Obj, workload: Workload) -> Obj:
    return replica_set_of(deployment, replicas=workload.replicas)


def counts(workload: Workload, ready: int, *, owner: Owner, since: str) -> Obj:
    if owner is Owner.JOB:
        return {"active": workload.replicas, "succeeded": 0, "failed": 0, "startTime": since, "ready": ready}
    counted = {"observedGeneration": 1, "replicas": workload.replicas}
    counted |= {"readyReplicas": ready, "availableReplicas": ready}
    match owner:
        case Owner.DEPLOYMENT:
            return counted | {"updatedReplicas": workload.replicas}
        case Owner.STATEFUL_SET:
            return counted | {"updatedReplicas": workload.replicas, "currentReplicas": workload.replicas}
    return counted | {"fullyLabeledReplicas": workload.replicas}


def _job(made: Obj, workload: Workload) -> Obj:
    """It runs for a month: long enough to be in the way of an upgrade."""
    template = made["spec"]["template"]
    pod_spec = {**template["spec"], "restartPolicy": "Never"}
    metadata = {**template["metadata"], "annotations": {RUNTIME_ANNOTATION: str(MONTH_S)}}
    spec = {"parallelism": workload.replicas, "completions": workload.replicas, "backoffLimit": 100}
    template = {"metadata": metadata, "spec": pod_spec}
    return {**made, "apiVersion": "batch/v1", "kind": "Job", "spec": {**spec, "template": template}}
