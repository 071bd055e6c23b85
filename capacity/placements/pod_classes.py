"""The workload class of a pod by the kinds of its owners. Pure. A pool may have pods of several classes.

A topmost owner of an unknown kind tells nothing, as a KServe InferenceService: the Deployment below it does.
"""

from collections.abc import Iterable, Mapping

from fleet.models.pool import WorkloadClass

CLASSES: Mapping[str, WorkloadClass] = {
    **dict.fromkeys(
        (
            "Job",
            "CronJob",
            "JobSet",
            "TrainJob",
            "PyTorchJob",
            "MPIJob",
            "RayJob",
            "TFJob",
            "XGBoostJob",
            "PaddleJob",
            "JAXJob",
            "Workflow",
            "SparkApplication",
        ),
        WorkloadClass.TRAINING,
    ),
    **dict.fromkeys(
        ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "LeaderWorkerSet", "RayService"),
        WorkloadClass.INFERENCE,
    ),
    **dict.fromkeys(("Notebook", "RayCluster", ""), WorkloadClass.DEVELOPMENT),
}


def class_of(kinds: Iterable[str]) -> WorkloadClass | None:
    """Returns the class of pods with owners of these kinds, the topmost first; blank: no controller.

    None: no kind tells a class.
    """
    return next((CLASSES[kind] for kind in kinds if kind in CLASSES), None)
