"""Owners of pods: Job, ReplicaSet, Deployment, StatefulSet. From kubernetes/api, batch/v1 and apps/v1 types.go."""

from datetime import datetime

from kube.structs.daemonset import PodTemplate
from kube.structs.meta import Condition, Seen, Struct, find


class WorkloadSpec(Struct, frozen=True):
    template: PodTemplate | None = None
    replicas: int | None = None
    parallelism: int | None = None  # Jobs only, like the next two
    completions: int | None = None  # None: the first success completes the Job
    suspend: bool | None = False


class WorkloadStatus(Struct, frozen=True):
    replicas: int | None = 0
    ready_replicas: int | None = 0
    ready: int | None = 0  # Jobs only
    active: int | None = 0  # Jobs only
    succeeded: int | None = 0  # Jobs only
    failed: int | None = 0  # Jobs only
    completion_time: datetime | None = None  # Jobs only
    conditions: list[Condition] | None = None


class WorkloadSeen(Seen, frozen=True):
    spec: WorkloadSpec | None = None
    status: WorkloadStatus | None = None

    @property
    def kind(self) -> str:
        raise NotImplementedError

    @property
    def template(self) -> PodTemplate:
        return (self.spec.template if self.spec else None) or PodTemplate()

    @property
    def desired(self) -> int | None:
        """Returns the desired number of pods. None: not specified."""
        return self.spec.replicas if self.spec else None

    @property
    def ready(self) -> int:
        return (self.status.ready_replicas if self.status else 0) or 0

    @property
    def failed(self) -> int:
        return 0

    @property
    def suspended(self) -> int | None:
        """Returns the number of pods that a suspended Job starts once it is resumed. None: not suspended."""
        return None


class ReplicaSetSeen(WorkloadSeen, frozen=True):
    @property
    def kind(self) -> str:
        return "ReplicaSet"

    @property
    def is_history(self) -> bool:
        """Tells whether this is an old revision of a Deployment: no pods and none desired."""
        return self.desired == 0 and not (self.status and self.status.replicas)


class DeploymentSeen(WorkloadSeen, frozen=True):
    @property
    def kind(self) -> str:
        return "Deployment"


class StatefulSetSeen(WorkloadSeen, frozen=True):
    @property
    def kind(self) -> str:
        return "StatefulSet"


class JobSeen(WorkloadSeen, frozen=True):
    @property
    def kind(self) -> str:
        return "Job"

    @property
    def desired(self) -> int | None:
        """Returns the desired number of pods as the Job controller computes it. It starts no more pods than
        completions are missing, and no new pod after a success if completions are not set.

        kubernetes, pkg/controller/job/job_controller.go, `manageJob`.
        """
        return 0 if self.spec and self.spec.parallelism is not None and self.spec.suspend else self._unsuspended

    @property
    def suspended(self) -> int | None:
        return self._unsuspended if self.spec and self.spec.suspend else None

    @property
    def _unsuspended(self) -> int | None:
        if self.spec is None or self.spec.parallelism is None:
            return None
        if self.is_finished:
            return 0
        status = self.status or WorkloadStatus()
        succeeded, active = status.succeeded or 0, status.active or 0
        if self.spec.completions is not None:
            return max(0, min(self.spec.parallelism, self.spec.completions - succeeded))
        return active if succeeded else self.spec.parallelism

    @property
    def ready(self) -> int:
        return (self.status.ready if self.status else 0) or 0

    @property
    def failed(self) -> int:
        return (self.status.failed if self.status else 0) or 0

    @property
    def is_finished(self) -> bool:
        if self.status is None:
            return False
        failed = find(self.status.conditions, "Failed")
        return self.status.completion_time is not None or (failed is not None and failed.status == "True")
