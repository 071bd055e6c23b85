"""The workload class of a pod by the kind of its topmost owner. Pure. A pool may have pods of several classes."""

from collections.abc import Mapping

from fleet.models.pool import WorkloadClass

CLASSES: Mapping[str, WorkloadClass] = {
    **dict.fromkeys(("Job", "CronJob", "JobSet", "TrainJob", "PyTorchJob", "MPIJob", "RayJob"), WorkloadClass.TRAINING),
    **dict.fromkeys(
        ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "LeaderWorkerSet", "RayService"),
        WorkloadClass.INFERENCE,
    ),
    **dict.fromkeys(("Notebook", "RayCluster", ""), WorkloadClass.DEVELOPMENT),
}


def class_of(kind: str) -> WorkloadClass | None:
    """Returns the class of pods with this topmost owner; blank: no controller. None: the kind tells no class."""
    return CLASSES.get(kind)
