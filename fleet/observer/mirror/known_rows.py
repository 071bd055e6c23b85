"""The knowledge of existing rows that a worker loads when it takes over a cluster.

An event names a pod by UID; the memory avoids a query per event. It also reveals rows to delete, such as those of a
node that lost its GPUs.
"""

from fleet.models import DriverObject, Node, Operand
from fleet.observer.mirror.kinds import EVENTS_ABOUT, KINDS
from fleet.observer.mirror.memory import UNREADABLE, Memory
from fleet.observer.mirror.watch_scope import WatchScope

LEARNED = tuple(part for name in EVENTS_ABOUT for part in KINDS[name].parts)


def learn(cluster_id: int, memory: Memory) -> None:
    """Loads the UIDs. One query per kind without known rows: a quarter of a second for 50,000 pods."""
    for part in LEARNED:
        known = memory.of(part.name)
        if not known:
            uids = part.rows_of(cluster_id).order_by().values_list("uid", flat=True)
            known.update(dict.fromkeys(uids.iterator(), UNREADABLE))


def watch_scope_of(cluster_id: int) -> WatchScope:
    """Rebuilds the scope from rows."""
    nodes = Node.objects.filter(cluster_id=cluster_id).with_gpus().values_list("name", flat=True)
    operands = Operand.objects.filter(cluster_id=cluster_id).order_by("pk").values_list("namespace", "owner_kind")
    scope = WatchScope(set(nodes), {namespace for namespace, _ in operands})
    scope.policy_namespace = next((namespace for namespace, owner in operands if owner == "ClusterPolicy"), "")
    policies = DriverObject.objects.filter(cluster_id=cluster_id, kind="ClusterPolicy").values()
    for row in policies:
        scope.follow_policy(row)
    return scope
