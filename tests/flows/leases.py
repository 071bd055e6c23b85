"""A worker's lease that ends by what it has seen, however long that takes."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from fleet.models import Bookmark, Cluster, Observer
from fleet.observer.lease.watch_lease import take_lease
from tests.flows.light import eventually
from tests.patience import PATIENCE_S


def hold_a_lease(
    cluster: Cluster,
    *meanwhile: Callable[[], object],
    until: Callable[[], object] = lambda: True,
    seconds: float = 0.7,
) -> None:
    """Take the cluster's lease; once it watches do these things to the cluster, one after another, while it lasts.

    It ends when it has lasted for `seconds`, nothing is being listed any more and the fact is one.
    """
    stop, epoch = threading.Event(), Observer.objects.get(cluster=cluster).epoch

    def hold() -> None:
        try:
            take_lease(cluster.pk, epoch, seconds=PATIENCE_S, stop=stop)
        finally:
            connection.close()

    def is_time() -> bool:
        return time.monotonic() > over_at and has_listed() and bool(until())

    def has_listed() -> bool:
        is_ours, bookmarks = (
            Observer.objects.get(cluster=cluster).epoch > epoch,
            Bookmark.objects.filter(cluster=cluster),
        )
        return is_ours and bookmarks.exists() and not bookmarks.filter(state="listing").exists()

    with ThreadPoolExecutor(1) as thread:
        lease = thread.submit(hold)
        try:
            for act in meanwhile:
                eventually(lambda: lease.done() or has_listed())
                time.sleep(0.3)  # what was done before is felt
                act()
            over_at = time.monotonic() + seconds
            eventually(lambda: lease.done() or is_time())
        finally:
            stop.set()
        lease.result()
