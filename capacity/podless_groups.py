"""PodGroups of Volcano that wait without pods: Volcano creates the pods of a Job once its queue has room for the group.

Their requests are demand that no list of pods has (volcano.sh/en/docs/podgroup: phases Pending and Inqueue).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from capacity.queue_places import place_of_group
from capacity.wait_reasons.amounts import amount_text, by_weight
from capacity.wait_reasons.queue_reasons import queued_reason
from fleet.models import Cluster, Pod, QueuedWorkload, QueueSystem
from gpu.resources import is_gpu_resource
from kube.quantity import whole_quantity
from people.models import User
from people.rights import Permission, scope_of
from wording.lists import names

READ_AT_MOST = 2_000  # groups, the oldest
SHOWN_AT_MOST = 100


@dataclass(frozen=True)
class PodlessGroup:
    group: QueuedWorkload
    requests: str  # GPUs of all its pods
    reason: str
    steps: Sequence[str]


def podless_groups(user: User) -> tuple[int, Sequence[PodlessGroup]]:
    """Returns how many groups with GPU requests wait without pods, and the oldest of them. Three queries.

    A user who sees only pools of a cluster sees none of it: a group is in no pool.
    """
    scope = scope_of(user, Permission.SEE)
    clusters = [
        key for key in Cluster.objects.visible_to(user).values_list("pk", flat=True) if scope.covers_cluster(key)
    ]
    has_pods = Exists(Pod.objects.filter(cluster=OuterRef("cluster"), owner_uid=OuterRef("owner_uid")))
    rows = QueuedWorkload.objects.filter(
        ~has_pods, cluster__in=clusters, system=QueueSystem.VOLCANO, is_waiting=True
    ).select_related("cluster")
    found = [
        (row, gpus) for row in rows.order_by("created_at", "pk")[:READ_AT_MOST] if (gpus := dict(_gpu_requests(row)))
    ]
    return len(found), [_group(row, gpus) for row, gpus in found[:SHOWN_AT_MOST]]


def _gpu_requests(row: QueuedWorkload) -> Iterator[tuple[str, int]]:
    for name, text in row.requests.items():
        if is_gpu_resource(name) and (amount := whole_quantity(text)):
            yield name, amount


def _group(row: QueuedWorkload, gpus: dict[str, int]) -> PodlessGroup:
    reason = queued_reason(place_of_group(row))
    return PodlessGroup(
        row,
        names([amount_text(name, amount) for name, amount in by_weight(gpus)]),
        f"{reason.title}. {reason.summary}",
        [change.text for change in reason.changes],
    )
