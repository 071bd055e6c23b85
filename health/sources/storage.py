"""Storage of a cluster's GPU telemetry under the lease of its round."""

from collections.abc import Callable

from django.db import transaction

from health.sources import boards, hours, resets, snapshots
from health.telemetry.base import TelemetryReading


def store_snapshot_of_round(
    cluster_id: int, taken: TelemetryReading, *, assert_lease: Callable[[], None], now: float
) -> None:
    """Stores the snapshot. Whoever takes over the round or removes the source waits until it is written.

    :raises LostLease: when they did so before
    :raises SnapshotsUnavailable: when Redis does not accept it
    """
    with transaction.atomic():
        assert_lease()
        snapshots.store(cluster_id, taken)
        resets.write(cluster_id, taken, now=now)
        boards.write(cluster_id, taken, now=now)
    hours.count(cluster_id, taken.snapshot, now=now)
