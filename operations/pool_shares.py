"""The shares of pools that chosen nodes are, and the nodes in service before and after."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from fleet.models import Cluster, Node, Pool
from operations.kinds import LEAVING_STEPS
from operations.lifecycle import OperationState
from operations.models import MaintenanceRequest, OperationNode, Quarantine
from wording.numbers import are, count

LARGE = 0.05  # of a pool; of nodes without one: of the cluster's GPU nodes
NEEDS_APPROVAL = 0.2  # of a production pool
SUMMED = timedelta(hours=24)  # operations of one person within it count together


@dataclass(frozen=True)
class PoolShare:
    """The chosen nodes of one pool, or of the nodes without a pool."""

    pool: str  # blank: the cluster's GPU nodes, for nodes without a pool
    chosen: int
    total: int
    in_service: int
    after: int  # in service, without the chosen nodes
    returned: int  # in service, with those of the chosen nodes that are Ready
    is_production: bool = False
    taken: int = 0  # other nodes that the same person took out of service lately, without another person

    @property
    def is_large(self) -> bool:
        return self.chosen > max(1, self.total * LARGE)

    @property
    def why_approval(self) -> str:
        """Returns why another person has to approve that these nodes leave service. Blank: nobody has to."""
        if not self.is_production or self.chosen + self.taken <= max(1, self.total * NEEDS_APPROVAL):
            return ""
        chosen = f"{self.chosen} of {count(self.total, 'node')} {are(self.chosen)} chosen"
        beside = f", beside {self.taken} of the same person within 24 h" if self.taken else ""
        limit = f"More than {NEEDS_APPROVAL * 100:.0f} % needs another person's approval."
        return f"Pool {self.pool} is production. {chosen}{beside}. {limit}"

    def effect(self, *, leaves: bool, returns: bool) -> str:
        """Returns the nodes in service before and after. `leaves`, `returns`: the chosen nodes do."""
        chosen = f"Pool {self.pool}: {self.chosen} of {count(self.total, 'node')} chosen"
        after = f", {self.after} without the chosen nodes" if leaves else ""
        after = f", {self.returned} with the chosen nodes" if returns and not leaves else after
        return f"{chosen}. {self.in_service} of the pool are in service now{after}."


def taken_by(actor: str, cluster: Cluster, *, now: datetime) -> set[int]:
    """Returns the keys of nodes that this person alone took out of service in the last 24 h. One query.

    An operation that another person approved does not count, and neither does a node that is back in service.
    """
    its = OperationNode.objects.filter(
        operation__cluster=cluster, operation__asked_by=actor, operation__asked_at__gte=now - SUMMED,
        operation__steps__0__in=LEAVING_STEPS, operation__preview__approvals=[],
    ).exclude(operation__state=OperationState.PROPOSED)  # fmt: skip
    quarantines = Quarantine.objects.in_force().filter(node_uid=OuterRef("node_uid"), operation=OuterRef("operation"))
    asked = MaintenanceRequest.objects.in_force().filter(node_uid=OuterRef("node_uid"), operation=OuterRef("operation"))
    out = its.filter(Q(pk__in=its.unfinished()) | Exists(quarantines) | Exists(asked))
    return set(Node.objects.filter(cluster=cluster, uid__in=out.values("node_uid")).values_list("pk", flat=True))


def shares_of(cluster: Cluster, nodes: Sequence[Node], *, taken: Collection[int] = ()) -> list[PoolShare]:
    """Returns a share for each pool of the nodes, and one for nodes without a pool. Three queries.

    `taken` are keys of nodes that the same person took out of service before.
    """
    chosen = {node.pk for node in nodes}
    pools = {pool.pk: pool for pool in Pool.objects.filter(cluster=cluster, nodes__in=chosen).distinct()}
    members: dict[int | None, list[tuple[int, bool, bool]]] = defaultdict(list)
    its = Node.pools.through.objects.filter(pool__in=list(pools))
    for pool, key, is_ready, is_cordoned in its.values_list("pool", "node", "node__is_ready", "node__is_unschedulable"):
        members[pool].append((key, is_ready is True and not is_cordoned, is_ready is True))
    if chosen - {key for rows in members.values() for key, *_ in rows}:
        rows = Node.objects.filter(cluster=cluster).with_gpus().values_list("pk", "is_ready", "is_unschedulable")
        members[None] = [
            (key, is_ready is True and not is_cordoned, is_ready is True) for key, is_ready, is_cordoned in rows
        ]
    return [
        PoolShare(
            pools[pool].name if pool else "",
            chosen=sum(key in chosen for key, *_ in rows),
            total=len(rows),
            in_service=sum(serves for _, serves, _ in rows),
            after=sum(serves and key not in chosen for key, serves, _ in rows),
            returned=sum(serves or (is_ready and key in chosen) for key, serves, is_ready in rows),
            is_production=pool is not None and pools[pool].is_production,
            taken=sum(key in taken and key not in chosen for key, *_ in rows),
        )
        for pool, rows in members.items()
    ]
