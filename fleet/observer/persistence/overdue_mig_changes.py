"""MIG changes that never end: their units count as missing again. Only the elapsed time shows it."""

from datetime import datetime

from django.db import transaction

from fleet.allocation.counters import count_written_nodes
from fleet.freshness.kinds import NODES
from fleet.messages import announce
from fleet.models import Node, Observer
from fleet.states.node import RECONFIGURED_WITHIN, RECONFIGURING


def note_overdue(cluster_id: int, *, epoch: int, now: datetime) -> int:
    """Marks overdue changes and returns their number.

    :raises LostLease: when another worker took the lease
    """
    late = Node.objects.filter(
        cluster_id=cluster_id,
        mig_config_state__in=RECONFIGURING,
        mig_is_overdue=False,
        mig_changing_since__lte=now - RECONFIGURED_WITHIN,
    )
    if not late.exists():
        return 0
    with transaction.atomic():
        Observer.keep(cluster_id, epoch=epoch, now=now, flushed=True)
        with count_written_nodes(cluster_id, late.values_list("pk", flat=True)):
            became = late.update(mig_is_overdue=True)
        seq = Observer.batch_of(cluster_id)
    announce.cluster_changed(cluster_id, seq=seq, prev=seq - 1, nodes=(), kinds=(NODES,), at=now)
    return became
