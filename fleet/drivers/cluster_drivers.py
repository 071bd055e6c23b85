"""The operator of a cluster and the controller of its driver versions, from rows."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Q

from fleet.drivers.mode import DriverMode, RunningOperator, mode_of, operator_of
from fleet.models import Bookmark, Cluster, DriverObject, Operand, Pod, Workload
from fleet.models.kinds import KIND_OF_OBJECT


@dataclass(frozen=True)
class Drivers:
    cluster: Cluster
    objects: Sequence[DriverObject]
    operands: Sequence[Operand]
    operator: RunningOperator
    mode: DriverMode


def drivers_of(
    cluster: Cluster, objects: Sequence[DriverObject], operands: Sequence[Operand], *, unseen: Collection[str] = ()
) -> Drivers:
    """Returns the drivers of a cluster. `unseen` as from `unseen_in`. One query."""
    operator = operator_of(objects, operands, Workload.objects.operators().filter(cluster=cluster))
    mode = mode_of(objects, operator=operator.version, unseen=unseen)
    return Drivers(cluster, objects, operands, operator, mode)


def read_drivers(cluster: Cluster, bookmarks: Iterable[Bookmark] | None = None) -> Drivers:
    """Loads the drivers of a cluster. Three queries, one more without its bookmarks."""
    objects = list(DriverObject.objects.filter(cluster=cluster))
    operands = list(Operand.objects.filter(cluster=cluster))
    if bookmarks is None:
        bookmarks = Bookmark.objects.filter(cluster=cluster, kind__in=KIND_OF_OBJECT.values())
    return drivers_of(cluster, objects, operands, unseen=unseen_in(bookmarks))


def unseen_in(bookmarks: Iterable[Bookmark]) -> set[str]:
    """Returns the kinds of driver objects whose absence is not certain."""
    told = {bookmark.kind for bookmark in bookmarks if bookmark.is_complete}
    return {kind for kind, name in KIND_OF_OBJECT.items() if name not in told}


# gpu-operator, deployments/gpu-operator/templates/operator.yaml; OperatorHub's has only the second (#331).
ITS_PODS = Q(pod_labels__app="gpu-operator") | Q(**{"pod_labels__app.kubernetes.io/component": "gpu-operator"})


def operator_trouble(cluster: Cluster) -> str:
    """Returns a sentence if the operator does not run. Blank: it runs, or is unknown. One or two queries."""
    deployments = list(Workload.objects.filter(ITS_PODS, cluster=cluster, kind="Deployment"))
    if not deployments or any(each.ready for each in deployments):  # one pod leads and does all of it
        return ""
    # of several installations, the one with most replicas
    lame = max(deployments, key=lambda each: each.desired or 0)
    named = f"Deployment {lame.namespace}/{lame.name}"
    if lame.desired == 0:
        return f"The GPU operator is disabled ({named} is scaled to 0). It rolls out and repairs nothing."
    pods = Pod.objects.filter(cluster=cluster, namespace=lame.namespace, name__startswith=f"{lame.name}-", operand="")
    said = next((pod.waiting_reason for pod in pods.filter(is_ready=False) if pod.waiting_reason), "")
    return (
        f"The GPU operator does not run ({named}, {lame.ready} of {lame.desired} pods ready). It rolls out and "
        f"repairs nothing.{f' Message of its pod: {said}.' if said else ''}"
    )
