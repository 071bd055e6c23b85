"""The GPU pods that do not run, in numbers, with the longest wait for a node: for the home page and REST."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleet.gpu_pods import sums_by_state, visible_pods
from fleet.queries import ClusterRow
from fleet.states.pod import CODES, PodState
from people.models import User
from people.rights import Permission, scope_of

STATES = (PodState.PENDING, PodState.STARTING, PodState.FAILING, PodState.REJECTED)


@dataclass(frozen=True)
class UnstartedPods:
    """The pods by state that the user sees. A cluster is in one of the lists when its pods are not all counted."""

    counts: Mapping[PodState, int]  # each state has a number
    waiting_since: datetime | None  # creation of the oldest pod that waits for a node; None: none waits
    unread: Sequence[str]  # clusters whose pods were never read
    hidden: Sequence[str]  # clusters of which the user sees pools alone: a pod without a node is in none
    as_of: datetime | None  # oldest update of the pods that are counted; None: all are live

    @property
    def is_unknown(self) -> bool:
        """Tells whether no cluster tells its pods, so that 0 means nothing."""
        return self.counts.keys() < set(STATES)


def unstarted_pods(user: User, clusters: Sequence[ClusterRow], *, now: datetime) -> UnstartedPods:
    """Returns the numbers of the user's clusters. Three queries."""
    known = [line for line in clusters if line.freshness.knows_pods]
    scope = scope_of(user, Permission.SEE)
    pods: Any = visible_pods(user, now=now).tenants().filter(cluster__in=[line.cluster.pk for line in known])
    found = Counter[int]()
    for _, code, number, *_ in sums_by_state(pods, "cluster_id"):
        found[code] += number
    code = CODES[PodState.PENDING]
    waiting = pods.filter(state_code=code, shown_state=code).order_by("created_at").values_list("created_at", flat=True)
    return UnstartedPods(
        {state: found[CODES[state]] for state in STATES} if known else {},
        waiting.first(),
        [line.cluster.name for line in clusters if line not in known],
        [line.cluster.name for line in known if not scope.covers_cluster(line.cluster.pk)],
        min((at for line in known if (at := line.freshness.pods_as_of)), default=None),
    )
