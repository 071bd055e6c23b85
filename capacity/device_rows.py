"""The devices that claims of waiting pods request, and those of each node, from the mirror."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, groupby
from typing import Any

from capacity.wait_reasons.device_requests import DeviceDemand, read_device_demand
from capacity.wait_reasons.requirements import WaitingPod
from fleet.allocation.devices import CUT, UNUSABLE, WHOLE
from fleet.allocation.slice_pools import PoolKey, PublishedPool, slice_pools
from fleet.models import Bookmark, DeviceClass, Pod, ResourceClaim, ResourceSlice
from kube.resources import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES

KINDS = (RESOURCE_CLAIMS.name, RESOURCE_SLICES.name, DEVICE_CLASSES.name)
DeviceCounts = Mapping[str, Mapping[str, tuple[int, int]]]  # by node and request: all that match, and the free ones
AllocatedDevice = tuple[str, str, str]  # driver, pool, device


def with_devices(cluster_id: int, pods: Sequence[Pod], facts: Mapping[str, WaitingPod]) -> dict[str, WaitingPod]:
    """Returns the pods with the devices of their claims. No query without claims; else five.

    A pod keeps no devices where a claim is allocated or missing, where a selector or a toleration is not evaluated
    here, or where a device that is not of one node could match.
    """
    names = {name for pod in pods for name in pod.claims}
    if not names or not Bookmark.objects.knows_all(cluster_id, *KINDS):
        return dict(facts)
    claims = {
        (row.namespace, row.name): row for row in ResourceClaim.objects.filter(cluster=cluster_id, name__in=names)
    }
    named = {wish["device_class"] for row in claims.values() for wish in row.requests}
    classes = dict(DeviceClass.objects.filter(cluster=cluster_id, name__in=named).values_list("name", "selectors"))
    shared = _devices_without_a_node(cluster_id)
    withheld = [pool for pool in slice_pools(cluster_id).values() if pool.is_withheld]
    found = dict(facts)
    for pod in pods:
        its = [claims.get((pod.namespace, name)) for name in pod.claims]
        requests = _requests_of(its, classes) if its else None
        if requests is not None and not any(
            request.matches(driver, device) for request, _ in requests for driver, device in shared
        ):
            known = facts[pod.uid]
            amounts = Counter[str]()
            for request, number in requests:
                amounts[request.name] += number
            is_constrained = any(wish.get("constrained") for row in its if row for wish in row.requests)
            distinct = tuple(dict.fromkeys(request for request, _ in requests))
            found[pod.uid] = replace(
                known,
                requests={**known.requests, **amounts},
                devices=distinct,
                has_device_constraints=is_constrained,
                has_device_overlaps=any(one.overlaps(other) for one, other in combinations(distinct, 2)),
                incomplete_pools=tuple(sorted(_texts_of(withheld, {request.driver for request in distinct}))),
            )
    return found


def _texts_of(pools: Iterable[PublishedPool], drivers: Collection[str]) -> Iterator[str]:
    return (f"{pool.name}: {pool.text}" for pool in pools if "" in drivers or pool.driver in drivers)


def _requests_of(
    claims: Sequence[ResourceClaim | None], classes: Mapping[str, Sequence[str]]
) -> list[tuple[DeviceDemand, int]] | None:
    """Returns the requests with their counts. None: one cannot be compared."""
    found: list[tuple[DeviceDemand, int]] = []
    for claim in claims:
        if claim is None or claim.allocated:
            return None
        for wish in claim.requests:
            if wish.get("admin"):
                continue  # beside the real user
            selectors = classes.get(wish["device_class"])
            if selectors is None or wish["all"] or wish.get("tolerant") or "/" in wish["name"]:
                return None  # every device, tainted ones, or one of several alternatives
            request = read_device_demand(wish["device_class"], selectors, wish["selectors"])
            if request is None:
                return None
            found.append((request, wish["count"] or 1))
    return found


def _devices_without_a_node(cluster_id: int) -> list[tuple[str, Mapping[str, Any]]]:
    """Returns the devices, with their drivers, of slices for all nodes, for selected ones, or for a node each."""
    rows = ResourceSlice.objects.filter(cluster=cluster_id, node_name="").order_by()
    return [(driver, device) for driver, devices in rows.values_list("driver", "devices") for device in devices]


def devices_of_nodes(cluster_id: int, requests: Collection[DeviceDemand]) -> DeviceCounts:
    """Returns the devices of each node that match each request. No query without requests, else three.

    A board counts as taken while a part of it is allocated, and a part while its board is. Counters that drivers share
    among parts are not read. The devices of a withheld pool match, and none is free. Devices are read node by node,
    and only of drivers that a request may have.
    """
    if not requests:
        return {}
    drivers = {request.driver for request in requests}
    claims = ResourceClaim.objects.filter(cluster=cluster_id).exclude(allocated=[]).order_by()
    allocated = {
        (each["driver"], each["pool"], each["device"])
        for devices in claims.values_list("allocated", flat=True).iterator()
        for each in devices
        if not each.get("admin") and ("" in drivers or each["driver"] in drivers)
    }
    slices = ResourceSlice.objects.filter(cluster=cluster_id).exclude(node_name="").order_by()
    if "" not in drivers:
        slices = slices.filter(driver__in=drivers)
    pools = slice_pools(cluster_id)
    withheld = {key for key, pool in pools.items() if pool.is_withheld}
    rows = slices.order_by("node_name").values("driver", "pool", "pool_generation", "node_name", "devices")
    current = (
        row
        for row in rows.iterator()
        if (pool := pools.get((row["driver"], row["pool"]))) and row["pool_generation"] == pool.generation
    )
    return {
        node: dict(_counts(list(its), requests, allocated, withheld))
        for node, its in groupby(current, key=lambda row: row["node_name"])
    }


def _counts(
    slices: Sequence[Mapping[str, Any]],
    requests: Collection[DeviceDemand],
    allocated: Collection[AllocatedDevice],
    withheld: Collection[PoolKey],
) -> Iterator[tuple[str, tuple[int, int]]]:
    devices = [(row["driver"], row["pool"], device) for row in slices for device in row["devices"]]
    taken = {(driver, pool, device["name"]) for driver, pool, device in devices} & set(allocated)
    held = [device for driver, pool, device in devices if (driver, pool, device["name"]) in taken]
    whole = {device["uuid"] for device in held if device["type"] in WHOLE and device["uuid"]}
    cut = {device["parent_uuid"] for device in held if device["type"] in CUT and device["parent_uuid"]}
    for request in requests:
        usable = [each for each in devices if request.matches(each[0], each[2]) and not _is_tainted(each[2])]
        free = [
            device
            for driver, pool, device in usable
            if (driver, pool) not in withheld
            and (driver, pool, device["name"]) not in taken
            and device["parent_uuid"] not in whole
            and not (device["type"] in WHOLE and device["uuid"] in cut)
        ]
        yield request.name, (len(usable), len(free))


def _is_tainted(device: Mapping[str, Any]) -> bool:
    return any(taint.get("effect") in UNUSABLE for taint in device["taints"])
