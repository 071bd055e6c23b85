"""The pace of evictions: at most 5 a second in a cluster, of all operations and dry runs together (lifecycle R26)."""

from datetime import datetime, timedelta

from operations.models import WriterLease

A_SECOND = 5
AT_ONCE = 10  # after a rest, and of one node in one round


def take_evictions(cluster_id: int, wanted: int, *, now: datetime) -> int:
    """Returns how many of the wanted evictions may be asked for now. 0: another worker took them, or too soon.

    The row holds the time until which evictions are paid for: each costs a fifth of a second, in advance of at most
    two seconds.
    """
    row = WriterLease.objects.filter(cluster=cluster_id).only("evictions_until").first()
    if row is None or wanted <= 0:
        return 0
    costs, in_advance = timedelta(seconds=1) / A_SECOND, timedelta(seconds=AT_ONCE / A_SECOND)
    begin = max(row.evictions_until or now, now)
    granted = min(wanted, (now + in_advance - begin) // costs)
    if granted <= 0:
        return 0
    same = WriterLease.objects.filter(pk=row.pk, evictions_until=row.evictions_until)
    return granted if same.update(evictions_until=begin + granted * costs) else 0
