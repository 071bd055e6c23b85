"""Which operator acts in a cluster, and what says there which driver runs, from its rows."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from fleet.drivers.mode import DriverMode, RunningOperator, mode_of, operator_of
from fleet.models import Bookmark, Cluster, DriverObject, Operand, Workload
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
