"""Which operator acts in a cluster, and what says there which driver runs, from its rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fleet.drivers.mode import DriverMode, RunningOperator, mode_of, operator_of
from fleet.models import Bookmark, Cluster, DriverObject, Operand, Workload
from kube.resources import CLUSTER_POLICIES

POLICIES = CLUSTER_POLICIES.name


@dataclass(frozen=True)
class Drivers:
    cluster: Cluster
    objects: Sequence[DriverObject]
    operands: Sequence[Operand]
    operator: RunningOperator
    mode: DriverMode


def drivers_of(
    cluster: Cluster, objects: Sequence[DriverObject], operands: Sequence[Operand], *, are_known: bool = True
) -> Drivers:
    """One query. `are_known`: as `are_policies_known` says."""
    operator = operator_of(objects, operands, Workload.objects.operators().filter(cluster=cluster))
    mode = mode_of(objects, operator=operator.version, are_known=are_known)
    return Drivers(cluster, objects, operands, operator, mode)


def read_drivers(cluster: Cluster) -> Drivers:
    """Four queries."""
    objects = list(DriverObject.objects.filter(cluster=cluster))
    operands = list(Operand.objects.filter(cluster=cluster))
    bookmarks = list(Bookmark.objects.filter(cluster=cluster, kind=POLICIES))
    return drivers_of(cluster, objects, operands, are_known=are_policies_known(bookmarks))


def are_policies_known(bookmarks: Iterable[Bookmark]) -> bool:
    """Whether there is no ClusterPolicy where none is held."""
    return any(bookmark.is_told for bookmark in bookmarks if bookmark.kind == POLICIES)
