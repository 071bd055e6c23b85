"""Which operator acts in a cluster, and what says there which driver runs, from its rows."""

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
    """One query. `unseen`: as `unseen_in` says."""
    operator = operator_of(objects, operands, Workload.objects.operators().filter(cluster=cluster))
    mode = mode_of(objects, operator=operator.version, unseen=unseen)
    return Drivers(cluster, objects, operands, operator, mode)


def read_drivers(cluster: Cluster) -> Drivers:
    """Four queries."""
    objects = list(DriverObject.objects.filter(cluster=cluster))
    operands = list(Operand.objects.filter(cluster=cluster))
    bookmarks = list(Bookmark.objects.filter(cluster=cluster, kind__in=KIND_OF_OBJECT.values()))
    return drivers_of(cluster, objects, operands, unseen=unseen_in(bookmarks))


def unseen_in(bookmarks: Iterable[Bookmark]) -> set[str]:
    """The kinds of driver objects of which nobody knows whether there is one where none is held."""
    told = {bookmark.kind for bookmark in bookmarks if bookmark.is_told}
    return {kind for kind, name in KIND_OF_OBJECT.items() if name not in told}


# gpu-operator, deployments/gpu-operator/templates/operator.yaml; OperatorHub's has only the second (#331).
ITS_PODS = Q(pod_labels__app="gpu-operator") | Q(**{"pod_labels__app.kubernetes.io/component": "gpu-operator"})


def operator_trouble(cluster: Cluster) -> str:
    """One query, and one more where something is wrong. Blank: it runs, or is not seen."""
    deployments = list(Workload.objects.filter(ITS_PODS, cluster=cluster, kind="Deployment"))
    if not deployments or any(each.ready for each in deployments):  # one pod leads and does all of it
        return ""
    lame = max(deployments, key=lambda each: each.desired or 0)  # one that an older installation left says less
    named = f"Deployment {lame.namespace}/{lame.name}"
    if lame.desired == 0:
        return f"The GPU operator is switched off ({named} is scaled to 0): nothing is rolled out or repaired."
    pods = Pod.objects.filter(cluster=cluster, namespace=lame.namespace, name__startswith=f"{lame.name}-", operand="")
    said = next((pod.waiting_reason for pod in pods.filter(is_ready=False) if pod.waiting_reason), "")
    return (
        f"The GPU operator does not run ({named}, {lame.ready} of {lame.desired} pods ready): nothing is rolled out or "
        f"repaired.{f' Its pod says {said}.' if said else ''}"
    )
