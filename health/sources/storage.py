"""What the GPUs of a cluster said, written under the lease in which they were asked."""

from collections.abc import Callable

from django.db import transaction

from health.sources import boards, hours, resets, snapshots
from health.telemetry.base import TelemetryReading


def keep(cluster_id: int, taken: TelemetryReading, *, assert_lease: Callable[[], None], now: float) -> None:
    """Who takes the round over, or its source away, waits: theirs is the newer frame, and none comes back.

    :raises LostLease: when they did so before
    :raises frames.FramesAway: Redis does not take it
    """
    with transaction.atomic():
        assert_lease()
        snapshots.keep(cluster_id, taken)
        resets.write(cluster_id, taken, now=now)
        boards.write(cluster_id, taken, now=now)
    hours.count(cluster_id, taken.frame, now=now)
