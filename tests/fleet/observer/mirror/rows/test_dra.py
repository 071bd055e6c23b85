"""Slices, claims and classes in the shapes of resource.k8s.io/v1 and v1beta1.

The slice of gpu.example.com is the one of kubernetes-sigs/dra-example-driver's README; the attributes of gpu.nvidia.com
are those that dra-driver-nvidia-gpu sets (cmd/gpu-kubelet-plugin/deviceinfo.go, mig.go).
"""

from typing import Any

import msgspec
import pytest

from fleet.observer.mirror.rows.dra import claim_row, class_row, slice_row
from kube.structs.dra import ClaimSeen, ClassSeen, SliceSeen

WHOLE: dict[str, Any] = {
    "attributes": {
        "type": {"string": "gpu"},
        "uuid": {"string": "GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c"},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": "Hopper"},
        "cudaComputeCapability": {"version": "9.0.0"},
        "driverVersion": {"version": "580.95.5"},
        "cudaDriverVersion": {"version": "13.0.0"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
    },
    "capacity": {"memory": {"value": "81559Mi"}},
}
CUT: dict[str, Any] = {
    "attributes": {
        "gpu.nvidia.com/type": {"string": "mig"},
        "uuid": {"string": "MIG-0f3a2f06-6c32-5dc1-a2a4-ee1b27c2c34a"},
        "parentUUID": {"string": "GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c"},
        "profile": {"string": "1g.10gb"},
    },
    "capacity": {"memory": {"value": "9856Mi"}, "multiprocessors": {"value": "16"}, "memorySlice0": {"value": "1"}},
    "taints": [
        {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule", "timeAdded": "2026-11-21T08:00:00Z"}
    ],
}
META = {"name": "gpu-001-gpu.nvidia.com-7x2vq", "uid": "uid-of-slice", "creationTimestamp": "2026-11-21T08:00:00Z"}


def a_slice(
    *devices: dict[str, Any], driver: str = "gpu.nvidia.com", node: str | None = "gpu-001", slices: int | None = 1
) -> SliceSeen:
    pool = {"name": "gpu-001", "generation": 3, "resourceSliceCount": slices}
    spec = {"driver": driver, "pool": pool, "nodeName": node, "devices": list(devices)}
    return msgspec.convert({"metadata": META, "spec": spec}, SliceSeen, strict=False)


@pytest.mark.parametrize(
    "shape", [lambda name, said: {"name": name, **said}, lambda name, said: {"name": name, "basic": said}]
)
def test_a_slice_names_its_devices_alike_in_every_version(shape):
    row = slice_row(a_slice(shape("gpu-0", WHOLE), shape("gpu-0-mig-1g10gb-0", CUT)))

    whole, cut = row["devices"]
    pool = (row["driver"], row["pool"], row["pool_generation"], row["pool_slices"])
    assert (*pool, row["node_name"]) == ("gpu.nvidia.com", "gpu-001", 3, 1, "gpu-001")
    assert (whole["type"], whole["product"], whole["driver_version"]) == ("gpu", "NVIDIA H100 80GB HBM3", "580.95.5")
    assert (whole["memory_bytes"], whole["taints"]) == (81559 * 2**20, [])
    assert (cut["type"], cut["profile"], cut["parent_uuid"]) == ("mig", "1g.10gb", whole["uuid"])
    assert cut["taints"] == [{"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}]


@pytest.mark.parametrize(("slices", "row"), [(2, 2), (0, None), (-1, None), (None, None), (2**40, 2**31 - 1)])
def test_a_number_of_slices_that_the_api_forbids_is_unknown(slices, row):
    assert slice_row(a_slice(slices=slices))["pool_slices"] == row


def test_a_driver_that_names_other_things_is_kept_without_them():
    device = {
        "name": "gpu-0",
        "basic": {
            "attributes": {
                "driverVersion": {"version": "1.0.0"},
                "index": {"int": 0},
                "model": {"string": "LATEST-GPU-MODEL"},
                "uuid": {"string": "gpu-18db0e85-99e9-c746-8531-ffeb86328b39"},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        },
    }

    (found,) = slice_row(a_slice(device, driver="gpu.example.com"))["devices"]

    assert (found["type"], found["product"], found["memory_bytes"]) == ("", "", 80 * 2**30)


def test_a_slice_whose_devices_name_their_node_is_that_nodes():
    one = {"name": "gpu-0", "nodeName": "gpu-007", **WHOLE}

    assert slice_row(a_slice(one, node=None))["node_name"] == "gpu-007"
    assert slice_row(a_slice(one, {"name": "gpu-1", "nodeName": "gpu-008"}, node=None))["node_name"] == ""


def a_claim(requests: object, status: object = None) -> ClaimSeen:
    metadata = {"name": "train-gpu-x7k2p", "namespace": "research", "uid": "uid-of-claim"}
    return msgspec.convert(
        {"metadata": metadata, "spec": {"devices": {"requests": requests}}, "status": status}, ClaimSeen, strict=False
    )


def test_a_claim_asks_alike_in_every_version():
    cel = [{"cel": {"expression": "device.attributes['gpu.nvidia.com'].productName.matches('H100')"}}]
    wish = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 2, "selectors": cel}

    nested = claim_row(a_claim([{"name": "gpus", "exactly": wish}]))["requests"]
    flat = claim_row(a_claim([{"name": "gpus", **wish}]))["requests"]

    assert nested == flat
    assert (nested[0]["name"], nested[0]["device_class"], nested[0]["count"]) == ("gpus", "gpu.nvidia.com", 2)
    assert nested[0]["selectors"] == [cel[0]["cel"]["expression"]]


def test_a_claim_for_all_names_no_count_and_alternatives_are_told_apart():
    every = {"name": "every", "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}}
    first = {"name": "one", "firstAvailable": [{"name": "big", "deviceClassName": "gpu"}, {"name": "small"}]}

    rows = claim_row(a_claim([every, first]))["requests"]

    assert [(row["name"], row["count"], row["all"]) for row in rows] == [
        ("every", None, True),
        ("one/big", 1, False),
        ("one/small", 1, False),
    ]


def test_a_claim_says_which_devices_it_was_given_and_to_whom():
    given = {"request": "gpus", "driver": "gpu.nvidia.com", "pool": "gpu-001", "device": "gpu-0"}
    watching = given | {"request": "watch", "device": "gpu-1", "adminAccess": True}
    status = {
        "allocation": {"devices": {"results": [given, watching]}, "nodeSelector": {"nodeSelectorTerms": []}},
        "reservedFor": [
            {"resource": "pods", "name": "train-0", "uid": "uid-of-train-0"},
            {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "uid-of-group"},
        ],
    }

    row = claim_row(a_claim([], status))

    assert row["allocated"] == [
        given | {"admin": False},
        {**given, "request": "watch", "device": "gpu-1", "admin": True},
    ]
    assert row["reserved_for"] == ["uid-of-train-0"]


def test_a_class_says_what_it_selects():
    expression = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
    spec = {"selectors": [{"cel": {"expression": expression}}], "extendedResourceName": "nvidia.com/gpu"}
    document = {"metadata": {"name": "gpu.nvidia.com", "uid": "uid-of-class"}, "spec": spec}

    row = class_row(msgspec.convert(document, ClassSeen))

    assert (row["selectors"], row["extended_resource_name"]) == ([expression], "nvidia.com/gpu")


@pytest.mark.parametrize(("kind", "row"), [(SliceSeen, slice_row), (ClaimSeen, claim_row), (ClassSeen, class_row)])
@pytest.mark.parametrize("rest", [{}, {"spec": None, "status": None}, {"spec": {}, "status": {}}])
def test_an_object_that_says_nothing_is_still_one(kind, row, rest):
    assert row(msgspec.convert({"metadata": META, **rest}, kind))["name"] == META["name"]
