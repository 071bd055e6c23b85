"""Claims, volumes, storage classes and CSINodes, as an API server sends them."""

import msgspec
import pytest

from fleet.observer.mirror.rows.storage import BOUND, csi_node_row, storage_class_row, volume_claim_row, volume_row
from kube.structs.storage import CsiNodeSeen, PersistentVolumeSeen, StorageClassSeen, VolumeClaimSeen

META = {"name": "data", "namespace": "team-a", "uid": "uid-of-data"}
ZONE = "topology.kubernetes.io/zone"


@pytest.mark.parametrize(("annotations", "volume"), [({BOUND: "yes"}, "pv-1"), ({}, "")])
def test_a_claim_is_bound_once_its_controller_says_so(annotations, volume):
    spec = {"volumeName": "pv-1", "storageClassName": "fast"}
    seen = msgspec.convert({"metadata": META | {"annotations": annotations}, "spec": spec}, VolumeClaimSeen)

    assert volume_claim_row(seen) == {
        "namespace": "team-a", "name": "data", "volume": volume, "storage_class": "fast", "is_leaving": False,
    }  # fmt: skip


def test_only_volumes_that_some_nodes_do_not_reach_are_kept():
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n-1"]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}}}
    local = msgspec.convert({"metadata": META, "spec": affinity}, PersistentVolumeSeen)
    zonal = msgspec.convert({"metadata": META | {"labels": {ZONE: "a__b"}}, "spec": {}}, PersistentVolumeSeen)
    anywhere = msgspec.convert({"metadata": META, "spec": {}}, PersistentVolumeSeen)

    assert volume_row(local) == {"name": "data", "node_affinity": [[on_node]], "zones": {}, "driver": ""}
    assert volume_row(zonal) == {"name": "data", "node_affinity": [], "zones": {ZONE: ["a", "b"]}, "driver": ""}
    assert volume_row(anywhere) is None


DISKS = {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}}


@pytest.mark.parametrize(
    ("meta", "spec", "driver"),
    [
        ({}, DISKS, "ebs.csi.aws.com"),
        ({}, DISKS | {"storageClassName": "fast"}, None),  # its class names the driver
        ({"annotations": {"pv.kubernetes.io/migrated-to": "ebs.csi.aws.com"}}, {}, "ebs.csi.aws.com"),
        ({"labels": {ZONE: "a"}}, DISKS | {"storageClassName": "fast"}, "ebs.csi.aws.com"),
    ],
)
def test_a_volume_names_its_csi_driver_where_no_class_does(meta, spec, driver):
    row = volume_row(msgspec.convert({"metadata": META | meta, "spec": spec}, PersistentVolumeSeen))

    assert (row and row["driver"]) == driver


def test_a_csi_node_has_the_limits_of_its_drivers():
    def row(*drivers):
        return csi_node_row(msgspec.convert({"metadata": META, "spec": {"drivers": drivers}}, CsiNodeSeen))

    files = {"name": "nfs.csi.k8s.io", "nodeID": "n-1"}
    disks = {"name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": {"count": 25}}
    assert row(files, disks) == {"name": "data", "limits": {"ebs.csi.aws.com": 25}}
    assert row(files, files | {"allocatable": {}}) is None
    assert csi_node_row(msgspec.convert({"metadata": META, "spec": {"drivers": None}}, CsiNodeSeen)) is None


def test_a_storage_class_has_its_mode_and_topologies():
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
    document = {
        "metadata": META, "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": topologies,
    }  # fmt: skip

    assert storage_class_row(msgspec.convert(document, StorageClassSeen)) == {
        "name": "data", "provisioner": "ebs.csi.aws.com", "waits_for_pod": True,
        "topologies": [[{"key": ZONE, "operator": "In", "values": ["a"]}]],
    }  # fmt: skip
