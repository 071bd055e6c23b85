"""What somebody may write by mistake is refused or warned of with its field, before a plan is drafted."""

from typing import Any

import pytest

from fleet.models import Cluster, Node
from people.models import AuditEntry
from rollouts.models import Plan
from tests.make import a_fleet
from tests.rollouts.api.test_documents import a_document, post

CANARY = {"name": "Canary", "kind": "canary", "count": 1}
REST = {"name": "Rest", "kind": "pool"}
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no stage": ({"stages": []}, "stages", "A plan needs at least one stage."),
    "a stage smaller than a node": ({"stages": [CANARY | {"count": 0}]}, "stages[0].count", "from 1 to"),
    "a wave smaller than a node": (
        {"stages": [CANARY, REST | {"max_unavailable": 0}]},
        "stages[1].max_unavailable",
        "from 1 to",
    ),
    "no version": ({"to": "latest"}, "to", "is no full driver version"),
    "a version that is there already": ({"to": "570.172.08"}, "to", "already asks for 570.172.08"),
    "a pool that is not there": ({"stages": [CANARY, REST | {"pool": "gone"}]}, "stages[1].pool", "has no pool gone"),
    "a gate that is none": ({"stages": [CANARY | {"gates": {"luck": {}}}]}, "stages[0].gates.luck", "no such field"),
}
SAID: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "no node": (
        {"stages": [CANARY, REST | {"selector": "tier=none"}]},
        "blockers",
        "stages[1].selector",
        "Rest takes no node.",
    ),
    "a node twice": (
        {"stages": [{"name": "Canary", "kind": "canary", "selector": "tier=a"}, REST | {"selector": "tier in (a,b)"}]},
        "warnings",
        "stages[1].selector",
        "Rest names gpu-0, too: it goes once, with Canary.",
    ),
    "a version that nobody knows": ({"to": "999.1.1"}, "blockers", "to", "newer than all that the matrix knows"),
    "a window that is not there": (
        {"stages": [CANARY, REST | {"gates": {"window": {}, "soak": {"duration": "10m"}, "driver_version": {}}}]},
        "blockers",
        "stages[1].gates.window",
        "no window covers gpu-1, gpu-2.",
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
        "Canary asks for 5000 nodes, and 3 are there for it.",
    ),
}


@pytest.fixture
def fleet(db: None) -> Cluster:
    cluster = a_fleet()
    for node, tier in zip(cluster.nodes.order_by("name"), "abb", strict=True):
        Node.objects.filter(pk=node.pk).update(labels={**node.labels, "tier": tier})
    return cluster


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_plan_is_refused_with_its_field(ada, fleet, what: str):
    given, field, words = REFUSED[what]

    reply = post(ada, a_document(fleet, **given))

    assert reply.status_code == 400
    assert {each["field"]: words in each["sentence"] for each in reply.json()["errors"]} == {field: True}
    assert not Plan.objects.exists()
    assert not AuditEntry.objects.filter(verb="draft").exists()


@pytest.mark.parametrize("what", SAID)
def test_what_a_plan_could_not_do_is_said_with_its_field(ada, fleet, what: str):
    given, kind, field, words = SAID[what]

    reply = post(ada, a_document(fleet, **given), query="?dry_run=true")

    assert reply.status_code == 200, reply.json()
    said = reply.json()["preview"][kind]
    assert [words in each["sentence"] for each in said if each["field"] == field].count(True) == 1, said
    assert not Plan.objects.exists()
