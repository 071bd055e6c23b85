"""Claims, volumes and storage classes, as an API server sends them."""

import msgspec
import pytest

from fleet.observer.mirror.rows.storage import BOUND, storage_class_row, volume_claim_row, volume_row
from kube.structs.storage import PersistentVolumeSeen, StorageClassSeen, VolumeClaimSeen

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

    assert volume_row(local) == {"name": "data", "node_affinity": [[on_node]], "zones": {}}
    assert volume_row(zonal) == {"name": "data", "node_affinity": [], "zones": {ZONE: ["a", "b"]}}
    assert volume_row(anywhere) is None


def test_a_storage_class_has_its_mode_and_topologies():
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
    document = {"metadata": META, "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": topologies}

    assert storage_class_row(msgspec.convert(document, StorageClassSeen)) == {
        "name": "data", "waits_for_pod": True, "topologies": [[{"key": ZONE, "operator": "In", "values": ["a"]}]],
    }  # fmt: skip
