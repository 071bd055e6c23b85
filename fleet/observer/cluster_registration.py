"""Registration of a cluster: checks its identity and our permissions before writing it."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from fleet.models import Cluster, ClusterMode, Observer
from fleet.observer.mirror.kinds import KINDS
from kube import client
from kube.client.connection import Connection
from kube.client.discovery import meaning_of_403, served
from kube.client.kubeconfig import pod_namespace
from kube.resources import (
    CLUSTER_POLICIES,
    DAEMON_SETS,
    NAMESPACES,
    NODES,
    NVIDIA_DRIVERS,
    PODS,
    REVISIONS,
    Resource,
)
from people.places import FLEET

NEEDED: tuple[Resource[Any], ...] = (NODES, PODS, DAEMON_SETS, REVISIONS)
WELCOME: tuple[Resource[Any], ...] = (NVIDIA_DRIVERS, CLUSTER_POLICIES)  # present where the GPU Operator is installed


class CannotAdd(Exception):
    """The refusal of a cluster, with a sentence for the person."""


@dataclass(frozen=True)
class Introduction:
    """The identity of a cluster as reported by itself."""

    uid: str
    server: str
    server_version: str
    notes: tuple[str, ...]  # advice that does not prevent registration
    pod_namespace: str = ""  # of our pod; blank outside of the cluster


def ask(kubeconfig: str, context: str) -> Introduction:
    """Checks a cluster.

    :raises CannotAdd: with the reason and the fix
    """
    try:
        with closing(client.connect(kubeconfig, context)) as connection:
            introduction = _introduce_cluster(connection)
            return introduction if kubeconfig else replace(introduction, pod_namespace=pod_namespace())
    except client.Forbidden as error:
        raise CannotAdd(f"{error}. Give Quarterdeck's user the rules of deploy/rbac/observe-only.yaml.") from error
    except client.BadCredentials as error:
        whose = f"context “{context}”" if context else "the cluster Secret" if kubeconfig else "our pod"
        raise CannotAdd(
            f"The API server does not accept the credentials of {whose} (401 Unauthorized). Renew them, and see that "
            "`kubectl get nodes` works with the same credentials.",
        ) from error
    except client.Untrusted as error:
        raise CannotAdd(f"{error.in_full}. The kubeconfig's certificate-authority must be the server's.") from error
    except client.ClusterError as error:
        raise CannotAdd(error.in_full) from error


def _introduce_cluster(connection: Connection) -> Introduction:
    version = client.server_version(connection)
    missing = list(_forbidden(connection))
    if missing:
        raise CannotAdd(
            (
                f"The credentials are valid, but these rules are missing: {'; '.join(missing)}. "
                "deploy/rbac/observe-only.yaml has all rules."
            ),
        )
    return Introduction(client.kube_system_uid(connection), connection.server, version, tuple(_notes(connection)))


def _forbidden(connection: Connection) -> Iterator[str]:
    """Yields each missing rule in RBAC notation. Only a list request proves a permission."""
    for resource in NEEDED:
        try:
            connection.get(resource.path(), {"limit": 1})
        except client.Forbidden:
            yield f"get, list, watch on {resource.name}"
    try:
        connection.get(NAMESPACES.path("kube-system"))
    except client.Forbidden:
        yield "get on namespaces, for the UID of kube-system, which identifies the cluster"


def _notes(connection: Connection) -> Iterator[str]:
    if not connection.is_verified:
        yield (
            "The server's certificate is not verified (insecure-skip-tls-verify): whoever is in between can read our "
            "token. Name its certificate-authority instead."
        )
    for resource in WELCOME:
        try:
            connection.get(resource.path(), {"limit": 1})
        except client.Absent:
            yield f"{resource.name} is not installed here, so its drivers cannot be promoted."
        except client.Forbidden:
            yield f"Quarterdeck may not list {resource.name}, so its drivers cannot be promoted."
    others = [kind.resource for kind in KINDS.values() if kind.where is None and kind.resource not in NEEDED + WELCOME]
    expected = (resource for resource in others if not resource.is_optional)
    missing = [resource.name for resource in expected if _is_forbidden(connection, resource)]
    if missing:
        yield (
            f"Quarterdeck may not list {', '.join(missing)}, so pages cannot show them. "
            "deploy/rbac/observe-only.yaml has the rules."
        )


def _is_forbidden(connection: Connection, resource: Resource[Any]) -> bool:
    """Tells whether the kind is forbidden though it is served. Other failures are reported when it is watched."""
    found = resource
    try:
        found = served(connection, resource)
        connection.get(found.path(), {"limit": 1, **found.query})
    except client.Forbidden as refusal:
        return meaning_of_403(connection, found, refusal) is refusal
    except client.ClusterError:
        return False
    return False


def add(
    name: str,
    *,
    kubeconfig: str,
    context: str,
    mode: ClusterMode | None,
    introduction: Introduction,
    now: datetime,
) -> tuple[Cluster, bool]:
    """Writes the cluster, or updates the one with this name and UID. True: it is new.

    No mode: the current one, or observe-only.

    :raises CannotAdd: when the name or the cluster is taken, or the name is reserved
    """
    known = Cluster.objects.filter(uid=introduction.uid).exclude(name=name).first()
    if known:
        raise CannotAdd(f"Quarterdeck already has this cluster as {known.name}: its kube-system has the same UID.")
    other = Cluster.objects.filter(name=name).exclude(uid=introduction.uid).first()
    if other:
        raise CannotAdd(
            f"Another cluster has the name {name}: its kube-system has the UID {other.uid}. If that cluster was "
            f"rebuilt, a worker detects it, and `accept_cluster {name}` accepts the new one."
        )
    if name == FLEET.name and not Cluster.objects.filter(name=name).exists():
        raise CannotAdd(f"“{name}” is the name for all clusters together. Choose another name.")
    with transaction.atomic():
        reached = {
            "kubeconfig": kubeconfig,
            "context": context,
            "server_version": introduction.server_version[:64].replace("\0", ""),
        } | ({"mode": mode} if mode else {})
        if introduction.pod_namespace:
            reached["own_namespace"] = introduction.pod_namespace
        cluster, is_new = Cluster.objects.update_or_create(
            name=name,
            uid=introduction.uid,
            defaults=reached,
            create_defaults=reached | {"added_at": now},
        )
        Observer.objects.get_or_create(cluster=cluster, defaults={"lease_until": now - timedelta(seconds=1)})
        Observer.try_now(cluster.pk)
    return cluster, is_new
