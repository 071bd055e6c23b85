"""Prometheus metrics of Quarterdeck itself. Each scrape reads the rows, so any process can answer."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from rest_framework.negotiation import DefaultContentNegotiation

from config.models import ProcessEnd, Sweep
from edges.rest import Edge
from fleet.allocation.physical import by_use
from fleet.allocation.tally import read_alike, tally
from fleet.freshness.kinds import NODES
from fleet.freshness.observation_state import behind_since_of
from fleet.freshness.threads import threads
from fleet.models import Bookmark, Cluster, Observer
from health.lifecycle import FindingState
from health.models import Finding
from people.rights import Permission, require
from rollouts.findings.plan_findings import CORDON_LEFT, EXCLUSION_LEFT, LEFT_BEHIND
from rollouts.lifecycle import PlanState
from rollouts.models import Plan


class DatabaseCollector(Collector):
    def __init__(self, now: datetime) -> None:
        self.now = now

    def collect(self) -> Iterator[Metric]:
        yield self.plans()
        yield from self.gpus()
        yield self.overdue()
        yield from self.bookmarks()
        yield from self.observers()
        yield self.unread()
        yield self.foreign_clusters()
        yield from self.process_ends()
        yield from self.sweeps()
        yield self.left_behind()

    def plans(self) -> GaugeMetricFamily:
        gauge = GaugeMetricFamily("quarterdeck_plans", "Plans by state.", labels=["state"])
        numbers = dict(Plan.objects.order_by().values_list("state").annotate(Count("pk")))
        for state in PlanState:
            gauge.add_metric([state.value], numbers.get(state.value, 0))
        return gauge

    def gpus(self) -> Iterator[GaugeMetricFamily]:
        """Yields GPU counts. A cluster without a node list has no sample, not 0 GPUs."""
        text = "Physical GPUs by use. Each GPU has one use."
        gpus = GaugeMetricFamily("quarterdeck_gpus", text, labels=["cluster", "use"])
        text = "GPU nodes whose number of GPUs is unknown."
        uncounted = GaugeMetricFamily("quarterdeck_nodes_uncounted", text, labels=["cluster"])
        listed = Bookmark.objects.known(NODES).values_list("cluster", "cluster__name")
        alike = read_alike()
        for pk, name in listed:
            counted = tally([sums for sums in alike if sums.cluster == pk])
            uncounted.add_metric([name], counted.uncounted_nodes or 0)
            for use, number in by_use(counted.physical_gpus_by_use or {}).items():
                gpus.add_metric([name, use], number)
        yield from (gpus, uncounted)

    def overdue(self) -> GaugeMetricFamily:
        """Returns how overdue plans are. Beat looks every second, so a long wait means that no worker runs."""
        gauge = GaugeMetricFamily("quarterdeck_plan_overdue_seconds", "How long the most overdue plan has been due.")
        waiting = Plan.objects.due(now=self.now).order_by("next_look_at").first()
        due_at = waiting.next_look_at if waiting else None
        gauge.add_metric([], (self.now - due_at).total_seconds() if due_at else 0)
        return gauge

    def bookmarks(self) -> Iterator[GaugeMetricFamily]:
        """Yields the age and state of each kind. A kind without any update has no age."""
        labels = ["cluster", "kind"]
        age = GaugeMetricFamily(
            "quarterdeck_bookmark_age_seconds", "Time since the last update of a kind.", labels=labels
        )
        state = GaugeMetricFamily(
            "quarterdeck_bookmark_state", "1 for the current state of a kind.", labels=[*labels, "state"]
        )
        for bookmark in Bookmark.objects.select_related("cluster"):
            state.add_metric([bookmark.cluster.name, bookmark.kind, bookmark.state], 1)
            if bookmark.last_seen_at:
                age.add_metric(
                    [bookmark.cluster.name, bookmark.kind], (self.now - bookmark.last_seen_at).total_seconds()
                )
        yield age
        yield state

    def observers(self) -> Iterator[GaugeMetricFamily]:
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
            lease.add_metric(name, (observer.lease_until - self.now).total_seconds())
            lag.add_metric(name, observer.lag_ms / 1000)
            behind.add_metric(name, behind_since_of(observer, now=self.now) is not None)
            if observer.clock_skew_s is not None:
                skew.add_metric(name, observer.clock_skew_s)
        yield from (lease, lag, behind, skew)
        yield from self.threads()
        text = "Clusters by state: watched, backing-off (API server does not answer), unwatched."
        clusters = GaugeMetricFamily("quarterdeck_observed_clusters", text, labels=["state"])
        watched = Observer.objects.filter(lease_until__gte=self.now).count()
        unwatched = Cluster.objects.unwatched(now=self.now).count()
        backing_off = Observer.objects.filter(lease_until__lt=self.now, next_look_at__gt=self.now).count()
        for state, number in (("watched", watched), ("backing-off", backing_off), ("unwatched", unwatched)):
            clusters.add_metric([state], number)
        yield clusters

    def threads(self) -> Iterator[GaugeMetricFamily]:
        """Yields thread counts as reported by workers; a silent worker drops out after its lease."""
        report = threads(now=self.now)
        text = "Observing workers that report."
        workers = GaugeMetricFamily("quarterdeck_observing_workers", text, value=report.workers)
        text = "Clusters that the observing workers can watch at once."
        total = GaugeMetricFamily("quarterdeck_observer_threads", text, value=report.total)
        text = "Threads that watch or probe a cluster."
        in_use = GaugeMetricFamily("quarterdeck_observer_threads_in_use", text, value=report.in_use)
        yield from (workers, total, in_use)

    def unread(self) -> GaugeMetricFamily:
        text = "Unreadable objects of a kind; 20 means 20 or more."
        gauge = GaugeMetricFamily("quarterdeck_unread_objects", text, labels=["cluster", "kind"])
        for bookmark in Bookmark.objects.exclude(unread={}).select_related("cluster"):
            gauge.add_metric([bookmark.cluster.name, bookmark.kind], len(bookmark.unread))
        return gauge

    def foreign_clusters(self) -> GaugeMetricFamily:
        text = "1: another cluster answers at this address, and a person must decide."
        gauge = GaugeMetricFamily("quarterdeck_cluster_foreign", text, labels=["cluster"])
        for name, foreign_uid in Cluster.objects.values_list("name", "foreign_uid"):
            gauge.add_metric([name], bool(foreign_uid))
        return gauge

    def process_ends(self) -> Iterator[Metric]:
        text = "Unexpected exits of our processes by cause."
        times = CounterMetricFamily("quarterdeck_process_ends", text, labels=["process", "cause"])
        text = "Time and host of the last unexpected exit by cause."
        labels = ["process", "cause", "host"]
        last = GaugeMetricFamily("quarterdeck_process_last_end_timestamp_seconds", text, labels=labels)
        for end in ProcessEnd.objects.all():
            times.add_metric([end.process, end.cause], end.times)
            last.add_metric([end.process, end.cause, end.last_host], end.last_at.timestamp())
        yield from (times, last)

    def sweeps(self) -> Iterator[Metric]:
        """Yields counts and times of sweeps; a sweep that never ran has none."""
        text = "Items found by sweeps: leases of crashed observers (leases), old rows (rows)."
        items = CounterMetricFamily("quarterdeck_swept", text, labels=["what"])
        text = "Time of a sweep's last run, to the minute. Leases: every 10 s; rows: every hour."
        last = GaugeMetricFamily("quarterdeck_sweep_last_timestamp_seconds", text, labels=["what"])
        for sweep in Sweep.objects.all():
            items.add_metric([sweep.what], sweep.found)
            last.add_metric([sweep.what], sweep.last_at.timestamp())
        yield from (items, last)

    def left_behind(self) -> GaugeMetricFamily:
        """Returns leftovers on nodes. No sweep removes them, since a person must find the reason."""
        text = "Findings of leftovers of finished plans on nodes: a hold, an exclusion, a cordon."
        gauge = GaugeMetricFamily("quarterdeck_left_behind", text, labels=["cluster", "what"])
        rules = {LEFT_BEHIND.key: "hold", EXCLUSION_LEFT.key: "exclusion", CORDON_LEFT.key: "cordon"}
        rows = Finding.objects.notified().unresolved().exclude(state=FindingState.CONFIRMING).filter(rule__in=rules)
        numbers = Counter(rows.order_by().values_list("cluster__name", "rule"))
        for name in Cluster.objects.order_by("name").values_list("name", flat=True):
            for rule, what in rules.items():
                gauge.add_metric([name, what], numbers[name, rule])
        return gauge


class AnyAccept(DefaultContentNegotiation):
    """Content negotiation that ignores Accept: Prometheus sends parameters that DRF cannot weigh, and reads this
    format."""

    def select_renderer(self, request, renderers, format_suffix=None):
        return renderers[0], renderers[0].media_type


class Metrics(Edge):
    """The metrics, for anyone who may see the whole fleet. Give Prometheus a token with the permission “see”."""

    content_negotiation_class = AnyAccept

    @extend_schema(exclude=True)
    def get(self, request) -> HttpResponse:
        require(self.user, Permission.SEE)
        registry = CollectorRegistry()
        registry.register(DatabaseCollector(timezone.now()))
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
