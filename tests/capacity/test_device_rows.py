"""Nodes whose free devices satisfy the claims of a waiting pod."""

from typing import Any

import pytest

from capacity.waiting_pods import explanations_of
from fleet.models import Cluster, DeviceClass, ResourceClaim, ResourceSlice
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db
DRIVER = "gpu.nvidia.com"
OF_CLASS = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"
REFUSED = "0/3 nodes are available: 3 cannot allocate all claims. no new claims to deallocate"
TAINT = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}


@pytest.fixture
def cluster():
    cluster = make.a_cluster("east")
    for kind in ("resourceclaims", "resourceslices", "deviceclasses"):
        make.a_bookmark(cluster, f"{kind}.resource.k8s.io")
    DeviceClass.objects.create(cluster=cluster, uid="c", name=DRIVER, selectors=[OF_CLASS], changed_at=NOON)
    for name in ("a", "b", "c"):
        make.a_node(cluster, name, gpus=0)
    return cluster


def a_slice(cluster, node: str, devices: list[dict[str, Any]], *, generation: int = 1, of: int | None = None) -> None:
    usual = {
        "type": "gpu",
        "product": "NVIDIA H100",
        "parent_uuid": "",
        "profile": "",
        "memory_bytes": 2**36,
        "taints": [],
    }
    rows = [usual | {"uuid": f"{node}-{each['name']}"} | each for each in devices]
    ResourceSlice.objects.create(
        cluster=cluster, uid=f"{node}-{generation}", name=f"{node}-{generation}", driver=DRIVER, pool=node,
        pool_generation=generation, pool_slices=of, node_name=node, devices=rows, changed_at=NOON,
    )  # fmt: skip


def a_claim(cluster, called: str, *, count: int = 1, allocated: Any = (), **wish: Any) -> None:
    request = {"name": "gpu", "device_class": DRIVER, "count": count, "all": False, "admin": False, "selectors": []}
    results = [{"request": "gpu", "driver": DRIVER, "pool": pool, "device": device} for pool, device in allocated]
    ResourceClaim.objects.create(
        cluster=cluster, uid=called, namespace="team-a", name=called, created_at=NOON, changed_at=NOON,
        requests=[request | wish], allocated=results,
    )  # fmt: skip


def why(cluster, *claims: str):
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": REFUSED}
    placement = {"scheduler": "default-scheduler", "conditions": [said]}
    pod = make.a_pending_pod(
        cluster, f"train-{len(claims)}-{claims[0]}", gpus=0, claims=list(claims), placement=placement
    )
    return explanations_of([pod], now=NOON)[pod.uid]


def two_gpus() -> list[dict[str, Any]]:
    return [{"name": "gpu-0"}, {"name": "gpu-1"}]


def test_free_devices_are_counted_per_node_and_the_nearest_is_named(cluster):
    a_slice(cluster, "a", two_gpus())
    a_slice(cluster, "b", [{"name": "gpu-0"}, {"name": "gpu-1", "taints": [TAINT]}])
    a_claim(cluster, "of-others", allocated=[("a", "gpu-0")])
    a_claim(cluster, "wanted", count=2)

    found = why(cluster, "wanted")

    assert (found.key, found.title) == ("no_room", f"Too few free devices: the pod requests 2 devices of {DRIVER}")
    assert [(step.left, step.removed) for step in found.funnel] == [(3, 0), (2, 1), (1, 1), (0, 1)]
    assert (found.near_misses[0].node.name, found.near_misses[0].lacks) == (
        "a", [f"1 device of {DRIVER} free of 2 devices of {DRIVER}"],
    )  # fmt: skip
    assert (found.agreement_ratio, found.differences) == (1, [])
    assert "device selectors of claims" not in found.not_checked


def test_a_part_in_use_takes_its_board_and_an_old_generation_does_not_count(cluster):
    a_slice(cluster, "a", two_gpus(), generation=1)
    part = {"name": "gpu-0-mig", "type": "mig", "parent_uuid": "a-gpu-0", "profile": "1g.10gb"}
    a_slice(cluster, "a", [{"name": "gpu-0"}, part], generation=2)
    a_claim(cluster, "of-others", allocated=[("a", "gpu-0-mig")])
    a_claim(cluster, "wanted")

    assert why(cluster, "wanted").key == "no_room"


def test_no_device_of_an_incomplete_pool_is_free_and_the_pool_is_named(cluster):
    Cluster.objects.update(server_version="v1.35.0")
    a_slice(cluster, "a", two_gpus(), of=1)
    a_slice(cluster, "b", two_gpus(), generation=1, of=2)
    a_slice(cluster, "b", two_gpus(), generation=2, of=2)
    a_claim(cluster, "of-others", allocated=[("a", "gpu-0")])
    a_claim(cluster, "wanted", count=2)

    found = why(cluster, "wanted")

    assert [(each.node.name, each.lacks) for each in found.near_misses] == [
        ("a", [f"1 device of {DRIVER} free of 2 devices of {DRIVER}"]),
        ("b", [f"0 devices of {DRIVER} free of 2 devices of {DRIVER}"]),
    ]
    assert "devices of incomplete pools (b: 1 of 2 ResourceSlices)" in found.not_checked

    Cluster.objects.update(server_version="v1.34.9")
    before = why(cluster, "wanted", "wanted")

    assert not any("incomplete pools" in each for each in before.not_checked)


def test_a_selector_that_no_device_matches(cluster):
    a_slice(cluster, "a", two_gpus())
    a_claim(cluster, "wanted", selectors=[f"device.attributes['{DRIVER}'].productName == 'NVIDIA B200'"])

    found = why(cluster, "wanted")

    assert found.title == f"No node offers devices of {DRIVER} (product == NVIDIA B200)"
    assert "ResourceSlice" in found.summary


@pytest.mark.parametrize(
    "wish",
    [
        {"selectors": ["cel.bind(x, 1, true)"]},
        {"all": True, "count": None},
        {"name": "gpu/small"},
        {"tolerant": True},
    ],
)
def test_what_is_not_evaluated_stays_the_schedulers_word(cluster, wish):
    a_slice(cluster, "a", two_gpus())
    a_claim(cluster, "wanted", **wish)

    found = why(cluster, "wanted")

    assert found.key == "claim"
    assert found.not_checked[0] == "device selectors of claims"


def test_constraints_between_devices_are_named_as_not_checked(cluster):
    a_slice(cluster, "a", two_gpus())
    a_claim(cluster, "wanted", count=2, constrained=True)

    found = why(cluster, "wanted")

    assert "constraints between the devices of a claim" in found.not_checked
    assert found.key == "scheduler"  # one node fits by what is compared, and the scheduler decides


def test_a_device_that_is_not_of_one_node_is_not_compared(cluster):
    a_slice(cluster, "a", [{"name": "gpu-0", "product": "NVIDIA A100"}])
    a_slice(cluster, "", [{"name": "gpu-9"}])  # of all nodes, or of those that a selector names
    a_claim(cluster, "wanted", selectors=[f"device.attributes['{DRIVER}'].productName == 'NVIDIA H100'"])
    a_claim(cluster, "other", selectors=[f"device.attributes['{DRIVER}'].productName == 'NVIDIA B200'"])

    assert why(cluster, "wanted").not_checked[0] == "device selectors of claims"
    assert why(cluster, "other").key == "offered_by_no_node"


def test_requests_for_the_same_devices_are_named_as_not_checked(cluster):
    a_slice(cluster, "a", two_gpus())
    a_claim(cluster, "any")
    a_claim(cluster, "large", selectors=[f"device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"])

    assert "several requests for the same devices" in why(cluster, "any", "large").not_checked
    assert "several requests for the same devices" not in why(cluster, "any").not_checked
