"""GPUs by use, the age of each kind, and the observers."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from prometheus_client.core import GaugeMetricFamily, Metric

from capacity.models import FreeGpuSample
from fleet.allocation.physical import by_use
from fleet.allocation.tally import Alike, read_alike, tally
from fleet.freshness.kinds import NODES
from fleet.freshness.observation_state import behind_since_of
from fleet.freshness.threads import threads
from fleet.models import Bookmark, Cluster, Observer, Pool

STRANDED_WITHIN = timedelta(hours=2, minutes=15)  # a sample is written within 15 minutes after its hour


def families(now: datetime) -> Iterator[Metric]:
    alike = read_alike()
    yield from _gpus(alike)
    yield _pools(alike)
    yield _stranded(now)
    yield from _bookmarks(now)
    yield from _observers(now)
    yield _unread()
    yield _foreign_clusters()


def _gpus(alike: Sequence[Alike]) -> Iterator[GaugeMetricFamily]:
    """Yields GPU counts. A cluster without a node list has no sample, not 0 GPUs."""
    text = "Physical GPUs by use. Each GPU has one use."
    gpus = GaugeMetricFamily("quarterdeck_gpus", text, labels=["cluster", "use"])
    text = "GPU nodes whose number of GPUs is unknown."
    uncounted = GaugeMetricFamily("quarterdeck_nodes_uncounted", text, labels=["cluster"])
    listed = Bookmark.objects.known(NODES).values_list("cluster", "cluster__name")
    for pk, name in listed:
        counted = tally([sums for sums in alike if sums.cluster == pk])
        uncounted.add_metric([name], counted.uncounted_nodes or 0)
        for use, number in by_use(counted.physical_gpus_by_use or {}).items():
            gpus.add_metric([name, use], number)
    yield from (gpus, uncounted)


def _pools(alike: Sequence[Alike]) -> GaugeMetricFamily:
    """Returns GPU counts of pools. An unknown number, such as free GPUs without a pod list, has no sample."""
    text = "Units of a pool by use: whole GPUs (gpu), MIG slices and partitions (slice), shares of GPUs (share)."
    units = GaugeMetricFamily("quarterdeck_pool_gpus", text, labels=["cluster", "pool", "unit", "use"])
    known = set(Bookmark.objects.known(NODES).values_list("cluster", flat=True))
    pools = Pool.objects.filter(cluster__in=known).order_by("cluster__name", "name")
    for pk, cluster, name in pools.values_list("pk", "cluster__name", "name"):
        counted = tally([sums for sums in alike if pk in sums.pools])
        for unit, amount in (("gpu", counted.gpus), ("slice", counted.slices), ("share", counted.shares)):
            for use in ("allocated", "free", "missing"):
                if amount.expected and (number := getattr(amount, use)) is not None:
                    units.add_metric([cluster, name, unit, use], number)
    return units


def _stranded(now: datetime) -> GaugeMetricFamily:
    """Returns the newest sample of each pool. A pool without a sample of the last two hours has none here."""
    text = "Free GPUs of a pool that its usual pod cannot have, by cause. Sampled once an hour."
    gauge = GaugeMetricFamily("quarterdeck_pool_stranded_gpus", text, labels=["cluster", "pool", "cause"])
    rows = FreeGpuSample.objects.filter(hour__gt=now - STRANDED_WITHIN).order_by("pool", "-hour")
    newest = {row.pool_id: row for row in reversed(rows.select_related("pool__cluster"))}
    for row in newest.values():
        for cause, number in row.stranded.items():
            gauge.add_metric([row.pool.cluster.name, row.pool.name, cause], number)
    return gauge


def _bookmarks(now: datetime) -> Iterator[GaugeMetricFamily]:
    """Yields the age and state of each kind. A kind without any update has no age."""
    labels = ["cluster", "kind"]
    age = GaugeMetricFamily("quarterdeck_bookmark_age_seconds", "Time since the last update of a kind.", labels=labels)
    state = GaugeMetricFamily(
        "quarterdeck_bookmark_state", "1 for the current state of a kind.", labels=[*labels, "state"]
    )
    for bookmark in Bookmark.objects.select_related("cluster"):
        state.add_metric([bookmark.cluster.name, bookmark.kind, bookmark.state], 1)
        if bookmark.last_seen_at:
            age.add_metric([bookmark.cluster.name, bookmark.kind], (now - bookmark.last_seen_at).total_seconds())
    yield age
    yield state


def _observers(now: datetime) -> Iterator[GaugeMetricFamily]:
    """Yields the observers' leases and lags. A clock that was never measured has no skew."""
    text = "Remaining lease of a cluster's observer. Negative: the cluster is unwatched."
    lease = GaugeMetricFamily("quarterdeck_observer_lease_seconds", text, labels=["cluster"])
    text = "Wait of the oldest change in an observer's last flush."
    lag = GaugeMetricFamily("quarterdeck_observer_lag_seconds", text, labels=["cluster"])
    text = "1: the observer is behind its cluster, so pages are outdated."
    behind = GaugeMetricFamily("quarterdeck_observer_behind", text, labels=["cluster"])
    text = "Clock of a cluster's API server minus our clock."
    skew = GaugeMetricFamily("quarterdeck_cluster_clock_skew_seconds", text, labels=["cluster"])
    for observer in Observer.objects.select_related("cluster"):
        name = [observer.cluster.name]
        lease.add_metric(name, (observer.lease_until - now).total_seconds())
        lag.add_metric(name, observer.lag_ms / 1000)
        behind.add_metric(name, behind_since_of(observer, now=now) is not None)
        if observer.clock_skew_s is not None:
            skew.add_metric(name, observer.clock_skew_s)
    yield from (lease, lag, behind, skew)
    yield from _threads(now)
    text = "Clusters by state: watched, backing-off (API server does not answer), unwatched."
    clusters = GaugeMetricFamily("quarterdeck_observed_clusters", text, labels=["state"])
    watched = Observer.objects.filter(lease_until__gte=now).count()
    unwatched = Cluster.objects.unwatched(now=now).count()
    backing_off = Observer.objects.filter(lease_until__lt=now, next_look_at__gt=now).count()
    for state, number in (("watched", watched), ("backing-off", backing_off), ("unwatched", unwatched)):
        clusters.add_metric([state], number)
    yield clusters


def _threads(now: datetime) -> Iterator[GaugeMetricFamily]:
    """Yields thread counts as reported by workers; a silent worker drops out after its lease."""
    report = threads(now=now)
    text = "Observing workers that report."
    workers = GaugeMetricFamily("quarterdeck_observing_workers", text, value=report.workers)
    text = "Clusters that the observing workers can watch at once."
    total = GaugeMetricFamily("quarterdeck_observer_threads", text, value=report.total)
    text = "Threads that watch or probe a cluster."
    in_use = GaugeMetricFamily("quarterdeck_observer_threads_in_use", text, value=report.in_use)
    yield from (workers, total, in_use)


def _unread() -> GaugeMetricFamily:
    text = "Unreadable objects of a kind; 20 means 20 or more."
    gauge = GaugeMetricFamily("quarterdeck_unread_objects", text, labels=["cluster", "kind"])
    for bookmark in Bookmark.objects.exclude(unread={}).select_related("cluster"):
        gauge.add_metric([bookmark.cluster.name, bookmark.kind], len(bookmark.unread))
    return gauge


def _foreign_clusters() -> GaugeMetricFamily:
    text = "1: another cluster answers at this address, and a person must decide."
    gauge = GaugeMetricFamily("quarterdeck_cluster_foreign", text, labels=["cluster"])
    for name, foreign_uid in Cluster.objects.values_list("name", "foreign_uid"):
        gauge.add_metric([name], bool(foreign_uid))
    return gauge
