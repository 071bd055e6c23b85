"""What a plan will ask and write in its cluster: each a right that it needs, in the order of its use.

Tests hold deploy/rbac/quarterdeck.yaml against it, and what rounds are seen to ask.
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
from rollouts.engine.live_state import STOP_SWITCH
from rollouts.engine.writer_lease import LEASE_NAME
from rollouts.models import Plan


def needed(
    plan: Plan, namespaces: list[str], *, with_slices: bool, with_jobs: bool = False
) -> Iterator[client.AccessAsked]:
    """`namespaces`: where its driver's DaemonSets are. `with_slices`: DRA drivers say something of its cluster.

    `with_jobs`: a gate of it has test Jobs made.
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
    """Of an image that is pulled beforehand: without these only that is refused (docs/design/0006)."""
    for namespace in namespaces:
        for verb in ("get", "create", "delete"):
            yield client.AccessAsked(verb, JOBS, namespace)
        for resource in (DAEMON_SETS, PODS):  # whose image it pulls, and with which secrets
            yield client.AccessAsked("get", resource, namespace)
        yield client.AccessAsked("list", EVENTS, namespace)
