"""Calls of the traffic hook: which nodes of a pool get no traffic during their change, and get it again.

A call is a domain event in the transaction of its cause, so it delays nothing. A route that names traffic sends it to a
signed webhook. Without such a route nothing is sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from fleet.models import DomainEvent, Node

DRAIN, UNDRAIN = "traffic.drain", "traffic.undrain"  # of `fleet.event_kinds`
MOST_NODES = 500  # names in one call
SEVERITY = "critical"  # quiet hours do not hold a call back


def call_traffic_hook(kind: str, plan, uids: Iterable[str], *, now: datetime, actor: str, reason: str) -> None:
    """Writes one call for each pool of these nodes. Call it in the transaction of the cause. Two queries."""
    through = Node.pools.through.objects.filter(node__cluster=plan.cluster_id, node__uid__in=set(uids))
    rows = through.order_by("pool_id", "node__name")
    nodes: dict[tuple[int, str, str], list[str]] = defaultdict(list)
    for pool, name, workload_class, node in rows.values_list(
        "pool_id", "pool__name", "pool__workload_class", "node__name"
    ):
        nodes[pool, name, workload_class].append(node)
    facts = {"plan": plan.pk, "title": plan.title, "severity": SEVERITY, "actor": actor, "reason": reason[:1000]}
    DomainEvent.write(
        [
            DomainEvent.of(
                kind, f"{traffic_key(plan.pk)}{pool}", cluster_id=plan.cluster_id, at=now, pool_id=pool,
                facts=facts | {
                    "pool": pool, "pool_name": name, "workload_class": workload_class, "nodes": names[:MOST_NODES],
                    "node_count": len(names),
                },
            )
            for (pool, name, workload_class), names in nodes.items()
        ]
    )  # fmt: skip


def traffic_key(plan_id: int) -> str:
    """Returns what the keys of all calls of a plan begin with."""
    return f"plan/{plan_id}/traffic/"
