"""The workloads whose new pods are rejected at creation, so that no list of pods has them: from current findings."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from capacity.pods.addresses import workload_page
from fleet.models import Bookmark, Cluster
from health.lifecycle import FindingState
from health.models import Finding
from health.rules.pods_rejected import PodsRejected
from people.models import User
from people.rights import Permission, scope_of

SHOWN_AT_MOST = 100  # the oldest


@dataclass(frozen=True)
class RejectedWorkload:
    finding: Finding

    @property
    def page(self) -> str:
        """Returns the address of the page of the workload, by the finding's subject: `Job team-a/train`."""
        kind, _, named = self.finding.subject.partition(" ")
        namespace, _, name = named.partition("/")
        return workload_page(self.finding.cluster_id, namespace, f"{kind}/{name}") if name else ""

    @cached_property
    def missing(self) -> int | None:
        """Returns the pods that it wants and that do not exist. None: how many it wants is not read."""
        return next((int(each["value"]) for each in self.finding.evidence if each["label"] == "Missing pods"), None)


@dataclass(frozen=True)
class RejectedWorkloads:
    workloads: int
    shown: Sequence[RejectedWorkload]
    unread: Sequence[str]  # clusters where the rule is not evaluated now: a kind that it reads is not live
    hidden: Sequence[str]  # clusters of which the user sees pools alone


def rejected_workloads(user: User, *, now: datetime) -> RejectedWorkloads:
    """Returns the workloads that the user sees, also those of muted findings. Four queries."""
    rows = Finding.objects.visible_to(user).filter(rule=PodsRejected.key).exclude(state=FindingState.RESOLVED)
    shown = rows.select_related("cluster").order_by("since", "pk")[:SHOWN_AT_MOST]
    live: dict[int, set[str]] = defaultdict(set)
    for bookmark in Bookmark.objects.filter(kind__in=PodsRejected.reads):
        if bookmark.is_fresh(now=now):
            live[bookmark.cluster_id].add(bookmark.kind)
    clusters = Cluster.objects.visible_to(user).order_by("name").values_list("pk", "name")
    scope = scope_of(user, Permission.SEE)
    return RejectedWorkloads(
        rows.count(),
        [RejectedWorkload(row) for row in shown],
        [name for key, name in clusters if not live[key].issuperset(PodsRejected.reads)],
        [name for key, name in clusters if not scope.covers_cluster(key)],
    )
