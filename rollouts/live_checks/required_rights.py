"""The Kubernetes rights that a plan needs, in the order of their use.

Tests compare them with deploy/rbac/quarterdeck.yaml and with the requests of rounds.
"""

from collections.abc import Iterator

from kube import client
from kube.resources import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DRIVER_OBJECTS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_SLICES,
    REVISIONS,
)
from operations.stop_switch import STOP_SWITCH
from operations.writer_lease import LEASE_NAME
from rollouts.models import Plan


def needed(
    plan: Plan, namespaces: list[str], *, with_slices: bool, with_jobs: bool = False
) -> Iterator[client.AccessAsked]:
    """Yields the rights. `namespaces` are those of the driver's DaemonSets, `with_slices` means that DRA drivers exist.

    `with_jobs` means that a gate creates test Jobs.
    """
    own, driver_object = plan.cluster.own_namespace, DRIVER_OBJECTS[plan.object_kind]
    yield client.AccessAsked("get", NAMESPACES, name="kube-system")
    yield client.AccessAsked("get", CONFIG_MAPS, own, STOP_SWITCH)
    yield client.AccessAsked("get", LEASES, own, LEASE_NAME)
    yield client.AccessAsked("create", LEASES, own)
    yield client.AccessAsked("update", LEASES, own, LEASE_NAME)
    for verb in ("get", "list", "patch"):
        yield client.AccessAsked(verb, NODES)
    for verb in ("get", "patch"):
        yield client.AccessAsked(verb, driver_object, name=plan.object_name)
    if with_slices:
        yield client.AccessAsked("list", RESOURCE_SLICES)
    for namespace in namespaces:
        for resource in (DAEMON_SETS, REVISIONS, PODS):
            yield client.AccessAsked("list", resource, namespace)
        if with_jobs:
            for verb in ("get", "create", "delete"):
                yield client.AccessAsked(verb, JOBS, namespace)
        for verb in plan.its_component.release.pod_verbs:
            yield client.AccessAsked(verb, PODS, namespace)


def spared(namespaces: list[str]) -> Iterator[client.AccessAsked]:
    """Yields the rights of image pulls; without them only the pull is refused (docs/design/0006)."""
    for namespace in namespaces:
        for verb in ("get", "create", "delete"):
            yield client.AccessAsked(verb, JOBS, namespace)
        for resource in (DAEMON_SETS, PODS):  # whose image it pulls, and with which secrets
            yield client.AccessAsked("get", resource, namespace)
        yield client.AccessAsked("list", EVENTS, namespace)
