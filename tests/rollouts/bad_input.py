"""What somebody may write into a plan by mistake: tried by REST, on the page and from a shell."""

import json
from typing import Any

from fleet.models import Cluster, Node
from tests.make import a_fleet

CANARY = {"name": "Canary", "kind": "canary", "count": 1}
REST = {"name": "Rest", "kind": "pool"}
# What is written → its field, and words of the sentence.
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no stage": ({"stages": []}, "stages", "A plan needs at least one stage."),
    "a stage smaller than a node": ({"stages": [CANARY | {"count": 0}]}, "stages[0].count", "from 1 to"),
    "a wave smaller than a node": (
        {"stages": [CANARY, REST | {"max_unavailable": 0}]},
        "stages[1].max_unavailable",
        "from 1 to",
    ),
    "no version": ({"to": "latest"}, "to", "” is not a full driver version"),
    "a version that is there already": ({"to": "570.172.08"}, "to", "already requests 570.172.08"),
    "a pool that is not there": ({"stages": [CANARY, REST | {"pool": "gone"}]}, "stages[1].pool", "has no pool gone"),
    "a gate that is none": (
        {"stages": [CANARY | {"gates": {"luck": {}}}]},
        "stages[0].gates.luck",
        "Unknown field. Known fields",
    ),
}
# The same of what is a plan, and could not do what it says: by blocker or warning.
SAID: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "no node": (
        {"stages": [CANARY, REST | {"selector": "tier=none"}]},
        "blockers",
        "stages[1].selector",
        "Rest takes no node",
    ),
    "a node twice": (
        {"stages": [{"name": "Canary", "kind": "canary", "selector": "tier=a"}, REST | {"selector": "tier in (a,b)"}]},
        "warnings",
        "stages[1].selector",
        "Rest and Canary select the same nodes",
    ),
    "a version that nobody knows": ({"to": "999.1.1"}, "blockers", "to", ": unknown"),
    "a window that is not there": (
        {"stages": [CANARY, REST | {"gates": {"window": {}, "soak": {"duration": "10m"}, "driver_version": {}}}]},
        "blockers",
        "stages[1].gates.window",
        "No maintenance window covers 2 nodes",
    ),
    "a gate that cannot be measured": (
        {"stages": [CANARY, REST | {"gates": {"validator_passed": {}}}]},
        "warnings",
        "stages[1].gates.validator_passed",
        "run no validator",
    ),
    "more targets than nodes": (
        {"stages": [CANARY | {"count": 5000}]},
        "warnings",
        "stages[0].count",
        "Canary asks for 5000 nodes and finds 3",
    ),
}
BOMB = "a: &a [x,x]\n" + "".join(f"{chr(c)}: &{chr(c)} [*{chr(c - 1)},*{chr(c - 1)}]\n" for c in range(98, 110))


def a_fleet_in_tiers() -> Cluster:
    cluster = a_fleet()
    for node, tier in zip(cluster.nodes.order_by("name"), "abb", strict=True):
        Node.objects.filter(pk=node.pk).update(labels={**node.labels, "tier": tier})
    return cluster


def a_document(cluster: Cluster, **given: Any) -> dict[str, Any]:
    stages = [{"name": "Canary", "kind": "canary", "count": 1}, {"name": "Rest", "kind": "pool", "pool": "h200"}]
    return {"cluster": cluster.name, "object": {"name": "h200"}, "to": "580.126.20", "stages": stages, **given}


def as_text(cluster: Cluster, **given: Any) -> str:
    """JSON is YAML, too."""
    return json.dumps(a_document(cluster, **given))
