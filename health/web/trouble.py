"""Checks whether any fault is visible to a user, before a page shows "no findings"."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.allocation.tally import tally
from fleet.freshness.kinds import Freshness
from fleet.models import Node
from fleet.queries import ClusterRow
from fleet.web.summary import alike_nodes
from health.inbox.queries import FindingCounts
from health.rules import RULES
from health.sources.cluster_telemetry import standings_of
from health.sources.exported_metrics import exporting_of
from people.models import User

READ = frozenset(kind for rule in RULES for kind in rule.reads)


@dataclass(frozen=True)
class Trouble:
    open: int  # findings that are confirmed
    confirming: int  # that are not yet
    muted: int  # muted findings
    faulty: int  # GPU nodes with faults, as the fleet counts them
    loading: Sequence[str]  # clusters whose nodes are listed for the first time: "north is loading: nodes, pods (12 s)"
    unseen: Sequence[str]  # the others that are not live
    last_seen_at: Mapping[int, datetime | None]  # both by their keys: when it was last observed
    silent: Sequence[str]  # live clusters without GPU telemetry
    unread: Sequence[str]  # reporting clusters whose exporters have no metric that a GPU rule reads
    blind: int  # rules on GPUs that read nothing on some nodes; this and `unread` only where nothing is found
    has_clusters: bool
    unlisted: Sequence[str]  # kinds that rules read and that are not seen in a cluster that is: "Pods of north"

    @property
    def has_no_findings(self) -> bool:
        """Returns whether a page may show "no findings"."""
        unsure = (
            self.confirming or self.muted or self.loading or self.unseen or self.silent or self.unread or self.unlisted
        )
        return self.has_clusters and not (self.open or self.faulty or unsure)


def trouble_of(user: User, counts: FindingCounts, lines: Sequence[ClusterRow], *, now: datetime) -> Trouble:
    """Returns the visible trouble of these clusters. Two queries; without findings one more.

    Then it also takes two Redis requests for each cluster with telemetry.
    """
    unseen = [line for line in lines if not line.freshness.is_fresh]
    # A stale cluster has its own sentence; a cluster without GPUs has no telemetry.
    seen = [line for line in lines if line.freshness.is_fresh and any(each.is_gpu_node for each in line.alike)]
    standings = standings_of([line.cluster.pk for line in seen], now=now)
    reporting = {key: standing for key, standing in standings.items() if standing.is_reporting}
    is_exported = counts.open or counts.acknowledged or counts.confirming  # no reassurance beside findings
    exporting = {} if is_exported else exporting_of(reporting, Node.objects.visible_to(user))
    return Trouble(
        open=counts.open + counts.acknowledged,
        confirming=counts.confirming,
        muted=counts.muted,
        faulty=tally(alike_nodes(lines)).faulty,
        unseen=[line.cluster.name for line in unseen if not line.freshness.is_loading],
        loading=[
            f"{line.cluster.name} is {line.freshness.observation.loading}"
            for line in unseen
            if line.freshness.is_loading
        ],
        last_seen_at={line.cluster.pk: line.freshness.last_seen_at for line in unseen},
        silent=[line.cluster.name for line in seen if line.cluster.pk not in reporting],
        unread=[line.cluster.name for line in seen if (its := exporting.get(line.cluster.pk)) and its.is_unread],
        blind=len(frozenset().union(*(each.blind_rules for each in exporting.values()))),
        has_clusters=bool(lines),
        unlisted=[
            f"{kind.name} of {line.cluster.name}"
            for line in lines
            for kind in line.freshness.troubles
            if line.freshness.is_fresh and kind.kind in READ and kind.state is not Freshness.FAILING  # a moment ago
        ],
    )
