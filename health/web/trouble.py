"""Whether anything is wrong that a person may see: the one thing that any page asks before it says that nothing is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from fleet.allocation.tally import read_alike, tally
from fleet.freshness.sight import sights_of_all
from fleet.models import Cluster
from health.lifecycle import FindingState
from health.models import Finding


@dataclass(frozen=True)
class Trouble:
    open: int  # findings that are confirmed
    confirming: int  # that are not yet
    muted: int  # that nobody is told of for a while
    faulty: int  # GPU nodes with faults, as the fleet counts them
    unseen: Sequence[str]  # clusters that are not live
    heard_at: Mapping[int, datetime | None]  # those by their keys: when each was heard last
    has_clusters: bool

    @property
    def is_calm(self) -> bool:
        """Whether a green word may be said."""
        return self.has_clusters and not (self.open or self.confirming or self.muted or self.faulty or self.unseen)


def trouble_of(user, *, cluster: Cluster | None = None, now: datetime) -> Trouble:
    """Of all that the person sees, or of one cluster. Six queries.

    A finding that is listed under its cause is not counted.
    """
    clusters = Cluster.objects.visible_to(user)
    findings = Finding.objects.visible_to(user).told().on_their_own().unresolved()
    if cluster is not None:
        clusters, findings = clusters.filter(pk=cluster.pk), findings.filter(cluster=cluster)
    states = dict(findings.order_by().values_list("state").annotate(number=Count("pk")))
    sights = sights_of_all(now=now)
    named = list(clusters.order_by("name").values_list("pk", "name"))
    return Trouble(
        open=states.get(FindingState.OPEN, 0) + states.get(FindingState.ACKNOWLEDGED, 0),
        confirming=states.get(FindingState.CONFIRMING, 0),
        muted=states.get(FindingState.MUTED, 0),
        faulty=tally(read_alike(user, clusters=None if cluster is None else [cluster.pk])).faulty,
        unseen=[name for pk, name in named if not sights[pk].is_live],
        heard_at={pk: sights[pk].heard_at for pk, _ in named if not sights[pk].is_live},
        has_clusters=bool(named),
    )
