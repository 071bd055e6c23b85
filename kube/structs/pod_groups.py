"""Owners whose pods come from several templates: JobSet, LeaderWorkerSet, Ray and Kubeflow. Only counts and templates.

JobSet: kubernetes-sigs/jobset@816ba51e, api/jobset/v1alpha2/jobset_types.go. LeaderWorkerSet: kubernetes-sigs/lws@
47a6181f, api/leaderworkerset/v1/leaderworkerset_types.go. Ray: ray-project/kuberay@3275ee09, ray-operator/apis/ray/v1.
PyTorchJob and MPIJob: kubeflow/training-operator, pkg/apis/kubeflow.org/v1; kubeflow/mpi-operator, pkg/apis/kubeflow/
v2beta1. Replicas that are not set are one, by the defaults of each; of workers of Ray they are their minimum.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

from kube.structs.daemonset import PodTemplate
from kube.structs.meta import Condition, Seen, Struct, find
from kube.structs.workload import WorkloadSpec

FINISHED = ("Completed", "Succeeded", "Failed")  # conditions of JobSets and of Kubeflow's jobs
RAY_JOB_ENDED = ("SUCCEEDED", "STOPPED", "FAILED")
RAY_DEPLOYMENT_ENDED = ("Complete", "Failed")


class TemplateGroup(NamedTuple):
    pods: int
    template: PodTemplate


class GroupedStatus(Struct, frozen=True):
    conditions: list[Condition] | None = None
    job_status: str | None = ""  # RayJobs only
    job_deployment_status: str | None = ""  # Failed, too, where the job itself was never asked again


class GroupedSeen(Seen, frozen=True):
    """An owner with several templates."""

    kind: ClassVar[str]

    @property
    def groups(self) -> Iterator[TemplateGroup]:
        raise NotImplementedError

    @property
    def is_suspended(self) -> bool:
        return False

    @property
    def is_finished(self) -> bool:
        return False


def _are_finished(status: GroupedStatus | None) -> bool:
    conditions = status.conditions if status else None
    found = (find(conditions, kind) for kind in FINISHED)
    return any(each is not None and each.status == "True" for each in found)


def _number(of: int | None) -> int:
    return 1 if of is None else max(0, of)


class ReplicatedJobTemplate(Struct, frozen=True):
    spec: WorkloadSpec | None = None


class ReplicatedJob(Struct, frozen=True):
    replicas: int | None = None
    template: ReplicatedJobTemplate | None = None


class JobSetSpec(Struct, frozen=True):
    replicated_jobs: list[ReplicatedJob] | None = None
    suspend: bool | None = False


class JobSetSeen(GroupedSeen, frozen=True):
    kind: ClassVar[str] = "JobSet"
    spec: JobSetSpec | None = None
    status: GroupedStatus | None = None

    @property
    def groups(self) -> Iterator[TemplateGroup]:
        for each in (self.spec.replicated_jobs if self.spec else None) or ():
            job = each.template.spec if each.template else None
            if job is not None and job.template is not None:
                yield TemplateGroup(_number(each.replicas) * _number(job.parallelism), job.template)

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec and self.spec.suspend)

    @property
    def is_finished(self) -> bool:
        return _are_finished(self.status)


class LeaderWorkerTemplate(Struct, frozen=True):
    size: int | None = None  # of a group, with its leader
    leader_template: PodTemplate | None = None  # None: as its workers
    worker_template: PodTemplate | None = None


class LeaderWorkerSetSpec(Struct, frozen=True):
    replicas: int | None = None
    leader_worker_template: LeaderWorkerTemplate | None = None


class LeaderWorkerSetSeen(GroupedSeen, frozen=True):
    kind: ClassVar[str] = "LeaderWorkerSet"
    spec: LeaderWorkerSetSpec | None = None

    @property
    def groups(self) -> Iterator[TemplateGroup]:
        template = self.spec.leader_worker_template if self.spec else None
        if self.spec is None or template is None or template.worker_template is None:
            return
        number, size = _number(self.spec.replicas), max(1, _number(template.size))
        yield TemplateGroup(number, template.leader_template or template.worker_template)
        yield TemplateGroup(number * (size - 1), template.worker_template)


class HeadGroup(Struct, frozen=True):
    template: PodTemplate | None = None


class WorkerGroup(Struct, frozen=True):
    replicas: int | None = None  # the autoscaler of Ray changes it
    min_replicas: int | None = None
    max_replicas: int | None = None
    num_of_hosts: int | None = None
    suspend: bool | None = False
    template: PodTemplate | None = None

    @property
    def pods(self) -> int:
        """Returns the pods that KubeRay makes: at least the minimum, which is also the default, at most the maximum."""
        if self.suspend:
            return 0
        wanted = max(self.replicas or 0, self.min_replicas or 0)
        most = wanted if self.max_replicas is None else max(0, self.max_replicas)
        return min(wanted, most) * _number(self.num_of_hosts)


class RayClusterSpec(Struct, frozen=True):
    head_group_spec: HeadGroup | None = None
    worker_group_specs: list[WorkerGroup] | None = None
    suspend: bool | None = False

    @property
    def groups(self) -> Iterator[TemplateGroup]:
        if self.head_group_spec and self.head_group_spec.template:
            yield TemplateGroup(1, self.head_group_spec.template)
        for each in self.worker_group_specs or ():
            if each.template is not None:
                yield TemplateGroup(each.pods, each.template)


class RayClusterSeen(GroupedSeen, frozen=True):
    kind: ClassVar[str] = "RayCluster"
    spec: RayClusterSpec | None = None

    @property
    def groups(self) -> Iterator[TemplateGroup]:
        return self.spec.groups if self.spec else iter(())

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec and self.spec.suspend)


class RayJobSpec(Struct, frozen=True):
    ray_cluster_spec: RayClusterSpec | None = None  # None: it uses an existing cluster
    suspend: bool | None = False


class RayJobSeen(GroupedSeen, frozen=True):
    kind: ClassVar[str] = "RayJob"
    spec: RayJobSpec | None = None
    status: GroupedStatus | None = None

    @property
    def groups(self) -> Iterator[TemplateGroup]:
        return self.spec.ray_cluster_spec.groups if self.spec and self.spec.ray_cluster_spec else iter(())

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec and self.spec.suspend)

    @property
    def is_finished(self) -> bool:
        status = self.status or GroupedStatus()
        return status.job_status in RAY_JOB_ENDED or status.job_deployment_status in RAY_DEPLOYMENT_ENDED


class ReplicaSpec(Struct, frozen=True):
    replicas: int | None = None
    template: PodTemplate | None = None


class RunPolicy(Struct, frozen=True):
    suspend: bool | None = False


class KubeflowSpec(Struct, frozen=True):
    pytorch_replica_specs: dict[str, ReplicaSpec] | None = None
    mpi_replica_specs: dict[str, ReplicaSpec] | None = None
    run_policy: RunPolicy | None = None


class KubeflowSeen(GroupedSeen, frozen=True):
    spec: KubeflowSpec | None = None
    status: GroupedStatus | None = None

    @property
    def replicas(self) -> Mapping[str, ReplicaSpec]:
        raise NotImplementedError

    @property
    def groups(self) -> Iterator[TemplateGroup]:
        for each in self.replicas.values():
            if each.template is not None:
                yield TemplateGroup(_number(each.replicas), each.template)

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec and self.spec.run_policy and self.spec.run_policy.suspend)

    @property
    def is_finished(self) -> bool:
        return _are_finished(self.status)


class PyTorchJobSeen(KubeflowSeen, frozen=True):
    kind: ClassVar[str] = "PyTorchJob"

    @property
    def replicas(self) -> Mapping[str, ReplicaSpec]:
        return (self.spec.pytorch_replica_specs if self.spec else None) or {}


class MPIJobSeen(KubeflowSeen, frozen=True):
    kind: ClassVar[str] = "MPIJob"

    @property
    def replicas(self) -> Mapping[str, ReplicaSpec]:
        return (self.spec.mpi_replica_specs if self.spec else None) or {}
