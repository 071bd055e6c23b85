"""Pods kept from nodes by their volumes: from the mirror to the reason."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from capacity.volume_rows import volumes_of_drivers
from capacity.waiting_pods import explanations_of
from fleet.models import Bookmark, CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kube.resources import CSI_NODES, PERSISTENT_VOLUMES, STORAGE_CLASSES, VOLUME_CLAIMS
from tests import make
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
DISKS = "ebs.csi.aws.com"
ZONE = "topology.kubernetes.io/zone"
IN_B = [[{"key": "zone", "operator": "In", "values": ["b"]}]]
UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"


@pytest.fixture
def cluster():
    cluster = make.a_cluster("east")
    for kind in (VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, CSI_NODES):
        known = {"state_since": NOON, "listed_at": NOON}
        Bookmark.objects.update_or_create(cluster=cluster, kind=kind.name, defaults=known)
    make.a_node(cluster, "n-1", labels={"zone": "a", ZONE: "a"}, allocatable={"nvidia.com/gpu": 8})
    return cluster


def explained(cluster, *, message: str = "", **claim: Any):
    mirrored = {"cluster": cluster, "changed_at": NOON}
    if claim:
        PersistentVolumeClaim.objects.create(**mirrored, uid="c", namespace="team-a", name="data", **claim)
    for name, waits, topologies in (("fast", True, IN_B), ("slow", False, [])):
        StorageClass.objects.create(
            **mirrored, uid=name, name=name, waits_for_pod=waits, topologies=topologies, provisioner=DISKS
        )
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


def with_a_limit(cluster, limit: int, *, on: str = "n-1"):
    CsiNode.objects.create(cluster=cluster, changed_at=NOON, uid=f"csi-{on}", name=on, limits={DISKS: limit})


def on_the_node(cluster, *volumes: str, storage_class: str = "slow"):
    """Adds a pod without GPUs that uses these volumes on the node."""
    for volume in volumes:
        PersistentVolumeClaim.objects.create(
            cluster=cluster, changed_at=NOON, uid=volume, namespace="db", name=volume, volume=volume,
            storage_class=storage_class,
        )  # fmt: skip
    node = cluster.nodes.get()
    make.a_pod(node, "postgres", namespace="db", is_tenant=False,
               exclusions={"volume_claims": list(volumes)})  # fmt: skip


def test_a_node_with_as_many_volumes_as_its_driver_permits(cluster):
    with_a_limit(cluster, 2)
    on_the_node(cluster, "pv-1", "pv-2")
    said = "0/1 nodes are available: 1 node(s) exceed max volume count."

    found = explained(cluster, message=said, storage_class="slow", volume="pv-anywhere")

    assert (found.key, found.decided_by, found.decided_kind) == ("volume_limit", DISKS, "CSI driver")
    assert found.title == f"Volume limit of {DISKS} excludes the only node with room"
    assert found.summary == "The pod has 1 volume of this driver. For example, n-1 has 2 of 2."
    assert [miss.lacks for miss in found.near_misses] == [[f"room for more volumes of {DISKS}: it has 2 of 2"]]
    assert [(change.text, change.fits_now) for change in found.changes] == [
        (f"Use fewer volumes of {DISKS} in the pod template.", 1),
        ("Wait until other pods end.", 0),
        ("Add nodes like these.", 0),
    ]
    assert (found.agreement_ratio, found.not_checked) == (1.0, [])


def test_a_pod_has_more_volumes_than_a_node_may_have(cluster):
    with_a_limit(cluster, 0)

    found = explained(cluster, storage_class="slow", volume="pv-anywhere")

    assert found.title == f"No qualifying node may have as many volumes of {DISKS}"
    assert found.funnel[-1].title == "May have as many volumes"
    assert (found.key, found.changes[0].actor) == ("volume_limit", "pod owner")


@pytest.mark.parametrize(
    ("limit", "on_node", "claim", "why"),
    [
        (3, ("pv-1", "pv-2"), {"storage_class": "slow", "volume": "pv-3"}, "room for one more"),
        (2, ("pv-1", "pv-2"), {"storage_class": "slow", "volume": "pv-1"}, "the node has this volume already"),
        (0, (), {"volume": "pv-anywhere"}, "a volume without a class and without a row has no driver"),
    ],
)
def test_a_limit_of_volumes_keeps_no_pod_from_a_node(cluster, limit, on_node, claim, why):
    with_a_limit(cluster, limit)
    on_the_node(cluster, *on_node)

    found = explained(cluster, **claim)

    assert (found.key, found.not_checked) == ("fits", []), why


def test_volumes_and_claims_that_no_pod_on_a_node_uses_are_not_read(cluster):
    with_a_limit(cluster, 2)
    on_the_node(cluster, "pv-1")
    mirrored = {"cluster": cluster, "changed_at": NOON}
    PersistentVolumeClaim.objects.create(**mirrored, uid="u", namespace="db", name="unused", volume="pv-unused")
    for name in ("pv-1", "pv-unused"):
        PersistentVolume.objects.create(**mirrored, uid=name, name=name, driver=DISKS)

    with CaptureQueriesContext(connection) as asked:
        found = volumes_of_drivers(cluster.pk, [DISKS])

    assert found[DISKS].used == {"n-1": frozenset({"pv-1"})}
    read = [rows_of(query["sql"]) for query in asked if "persistentvolume" in query["sql"]]
    assert [len(rows) for rows in read] == [1, 1]


def rows_of(statement: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def test_limits_of_volumes_that_may_not_be_read_are_named(cluster):
    Bookmark.objects.filter(kind=CSI_NODES.name).update(listed_at=None)

    assert explained(cluster, storage_class="slow", volume="pv-1").not_checked == ["volumes per node"]


def test_claims_with_an_unknown_driver_are_named(cluster):
    found = explained(cluster, storage_class="deleted", volume="pv-1")

    assert found.not_checked == ["volumes per node of claims with an unknown CSI driver (data)"]
