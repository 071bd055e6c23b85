"""Pods kept from nodes by their volumes: from the mirror to the reason."""

from typing import Any

import pytest

from capacity.waiting_pods import explanations_of
from fleet.models import Bookmark, PersistentVolume, PersistentVolumeClaim, StorageClass
from kube.resources import PERSISTENT_VOLUMES, STORAGE_CLASSES, VOLUME_CLAIMS
from tests import make
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
ZONE = "topology.kubernetes.io/zone"
IN_B = [[{"key": "zone", "operator": "In", "values": ["b"]}]]
UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"


@pytest.fixture
def cluster():
    cluster = make.a_cluster("east")
    for kind in (VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES):
        known = {"state_since": NOON, "listed_at": NOON}
        Bookmark.objects.update_or_create(cluster=cluster, kind=kind.name, defaults=known)
    make.a_node(cluster, "n-1", labels={"zone": "a", ZONE: "a"}, allocatable={"nvidia.com/gpu": 8})
    return cluster


def explained(cluster, *, message: str = "", **claim: Any):
    mirrored = {"cluster": cluster, "changed_at": NOON}
    if claim:
        PersistentVolumeClaim.objects.create(**mirrored, uid="c", namespace="team-a", name="data", **claim)
    for name, waits, topologies in (("fast", True, IN_B), ("slow", False, [])):
        StorageClass.objects.create(**mirrored, uid=name, name=name, waits_for_pod=waits, topologies=topologies)
    PersistentVolume.objects.create(**mirrored, uid="v", name="pv-b", node_affinity=IN_B)
    PersistentVolume.objects.create(**mirrored, uid="z", name="pv-zone", zones={ZONE: ["b", "c"]})
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    placement = {"volume_claims": ["data"], "conditions": [condition] if message else []}
    pod = make.a_pending_pod(cluster, placement=placement, created_at=NOON)
    return explanations_of([pod], now=NOON)[pod.uid]


@pytest.mark.parametrize(
    ("claim", "message", "title", "summary"),
    [
        ({}, "", "PersistentVolumeClaim data does not exist", "The scheduler waits until it is created."),
        (
            {"volume": "pv-b", "is_leaving": True}, "", "PersistentVolumeClaim data is being deleted",
            "The scheduler refuses its pods.",
        ),
        (
            {"storage_class": "slow"}, UNBOUND, "Volume claim data has no volume yet",
            "The scheduler does not compare nodes before the claim is bound. Storage class: slow.",
        ),
        (
            {"volume": "pv-b"}, "", "No qualifying node reaches the volume of claim data",
            "1 node otherwise qualifies. Volumes are in data: zone=b.",
        ),
        (
            {"volume": "pv-zone"}, "", "No qualifying node reaches the volume of claim data",
            f"1 node otherwise qualifies. Volumes are in data: {ZONE} in (b, c).",
        ),
        (
            {"storage_class": "fast"}, "", "No qualifying node reaches the volume of claim data",
            "1 node otherwise qualifies. Volumes are in data: zone=b.",
        ),
    ],
)  # fmt: skip
def test_a_volume_keeps_a_pod_from_nodes(cluster, claim, message, title, summary):
    found = explained(cluster, message=message, **claim)

    assert (found.key, found.title, found.summary) == ("volume", title, summary)
    assert found.decided_by == "data"
    assert found.changes


def test_a_volume_that_every_node_reaches_keeps_it_from_none(cluster):
    assert explained(cluster, volume="pv-anywhere").key == "fits"


def test_volumes_that_may_not_be_read_are_named(cluster):
    Bookmark.objects.filter(kind=VOLUME_CLAIMS.name).update(listed_at=None)

    found = explained(cluster, volume="pv-b")

    assert (found.key, found.not_checked) == ("fits", ["volumes"])
