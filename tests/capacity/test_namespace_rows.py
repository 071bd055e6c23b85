"""Namespaces: deleted ones on pages and in REST, and their labels in rules of pods."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from capacity.waiting_pods import explanations_of
from fleet.models import ClusterNamespace
from fleet.observer.mirror.rows.namespaces import namespace_row
from kube.structs import NamespaceSeen
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
HELD = "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"


@pytest.fixture
def cluster():
    return make.a_cluster("east")


def a_namespace(cluster, name: str, **given: Any) -> ClusterNamespace:
    return ClusterNamespace.objects.create(cluster=cluster, uid=name, name=name, changed_at=NOON, **given)


def test_a_row_has_the_labels_and_what_holds_a_deletion():
    conditions = [
        {"type": "NamespaceContentRemaining", "status": "True", "message": "1 pod"},
        {"type": "NamespaceFinalizersRemaining", "status": "True", "message": HELD},
    ]
    meta = {"name": "ml", "uid": "u", "labels": {"team": "red"}, "deletionTimestamp": "2026-11-21T08:00:00Z"}

    row = namespace_row(msgspec.convert({"metadata": meta, "status": {"conditions": conditions}}, NamespaceSeen))

    assert (row["name"], row["labels"], row["held_by"]) == ("ml", {"team": "red"}, HELD)
    alive = namespace_row(msgspec.convert({"metadata": {"name": "ml", "uid": "u"}}, NamespaceSeen))
    assert (alive["deleted_at"], alive["held_by"]) == (None, "")


def test_a_deleted_namespace_is_the_reason_and_stands_on_its_page(cluster, settings, now):
    settings.OWNER_LABEL = "team"
    pod = make.a_pending_pod(cluster, "train", namespace="ml", placement={"gates": ["example.com/hold"]})
    a_namespace(cluster, "ml", deleted_at=NOON - timedelta(hours=2), held_by=HELD, labels={"team": "red"})
    make.a_bookmark(cluster, "namespaces")
    bob = make.a_user("bob", role="viewer")

    found = explanations_of([pod], now=NOON)[pod.uid]

    assert (found.key, found.title) == ("namespace_deleted", "Namespace ml is being deleted")
    assert HELD in found.summary
    address = f"/clusters/{cluster.pk}/namespaces/ml"
    assert address in page(visiting(bob), f"/pods/{pod.pk}").links
    assert HELD in page(visiting(bob), address).text
    answer = calling(bob).get(f"/api/v1{address}").json()
    assert (answer["owner"], answer["held_by"], answer["pod_security"]) == ("red", HELD, "")


@pytest.mark.parametrize("mark", [{"state": "forbidden"}, {"last_seen_at": NOON - timedelta(minutes=5)}])
def test_rows_that_are_not_read_now_tell_nothing(cluster, mark, now):
    pod = make.a_pending_pod(cluster, "train", namespace="ml", placement={"gates": ["example.com/hold"]})
    a_namespace(cluster, "ml", deleted_at=NOON - timedelta(hours=2), labels={"team": "red"})
    make.a_bookmark(cluster, "namespaces", **mark)

    assert explanations_of([pod], now=NOON)[pod.uid].key != "namespace_deleted"
    answer = calling(make.a_user("bob", role="viewer")).get(f"/api/v1/clusters/{cluster.pk}/namespaces/ml").json()
    assert (answer["owner"], answer["pod_security"], answer["deleted_at"]) == (None, None, None)


def test_anti_affinity_to_namespaces_by_label_is_compared_once_they_are_read(cluster):
    node = make.a_node(cluster, "gpu-1", gpus=8, labels={"zone": "a"})
    make.a_pod(node, "chat", namespace="prod", labels={"app": "chat"})
    a_namespace(cluster, "prod", labels={"tier": "x"})
    selector = {"selector": {"matchLabels": {"app": "chat"}}, "namespace_selector": {"matchLabels": {"tier": "x"}}}
    placement = {"scheduler": "default-scheduler", "pod_anti_affinity": [{"key": "zone", **selector}]}
    pod = make.a_pending_pod(cluster, "train", placement=placement, created_at=NOON)

    before = explanations_of([pod], now=NOON)[pod.uid]
    make.a_bookmark(cluster, "namespaces")
    after = explanations_of([pod], now=NOON)[pod.uid]

    assert "pod affinity to namespaces by their labels" in before.not_checked
    assert after.key == "pod_affinity"
    assert "Its anti-affinity excludes the only node with room" in after.title
