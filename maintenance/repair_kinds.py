"""Discovers the kinds of objects that ask a cluster's controllers for repairs, so that pages know who can be asked."""

from contextlib import closing
from datetime import datetime, timedelta

import structlog

from fleet.messages import wake
from fleet.models import Cluster, ClusterMode
from kube import client
from kube.client import AccessAsked
from kube.resources import Resource
from kube.structs import CustomSeen
from maintenance.actors import ACTORS
from maintenance.actors.base import AnnotationActor, ClusterActor
from maintenance.actors.nvsentinel_reboot import NvsentinelReboot
from maintenance.models import RepairKinds

EVERY = timedelta(minutes=5)
WANTED = {actor.object_kind: actor for actor in ACTORS.values() if isinstance(actor, ClusterActor)}
SENTINEL = NvsentinelReboot.object_kind
SUFFIXES = {kind: actor.group_suffix for kind, actor in WANTED.items()}
log = structlog.get_logger()


def queue_discoveries(*, now: datetime) -> None:
    """Queues a look at each cluster that was not checked for `EVERY`. One query when none is due."""
    operated = Cluster.objects.filter(mode=ClusterMode.OPERATE)
    fresh = RepairKinds.objects.filter(looked_at__gt=now - EVERY).values("cluster")
    for cluster_id in operated.exclude(pk__in=fresh).values_list("pk", flat=True):
        RepairKinds.objects.update_or_create(cluster_id=cluster_id, defaults={"looked_at": now})
        given = {"cluster_id": cluster_id}
        wake.queue("maintenance.tasks.discover_repair_kinds", queue="rollouts", kwargs=given, expires=60)


def discover(cluster_id: int, *, now: datetime) -> None:
    """Stores which kinds the cluster serves and lets Quarterdeck write. A silent cluster changes nothing."""
    cluster = Cluster.objects.get(pk=cluster_id)
    try:
        with closing(client.connect(cluster.kubeconfig, cluster.context)) as connection:
            served = client.find_kinds(connection, SUFFIXES)
            found = {kind: _why_not(connection, kind, served.get(kind)) for kind in WANTED}
    except client.ClusterError as error:
        log.warning("repair kinds are not discovered", cluster=cluster.name, error=str(error))
        return
    columns = {"why_not": found, "looked_at": now, "sentinel_seen_at": now if SENTINEL in served else None}
    RepairKinds.objects.update_or_create(cluster=cluster, defaults=columns)


def _why_not(connection: client.Connection, kind: str, resource: Resource[CustomSeen] | None) -> str:
    if resource is None:
        return f"The cluster serves no {kind}."
    verb = "patch" if isinstance(WANTED[kind], AnnotationActor) else "create"
    if not client.is_access_allowed(connection, AccessAsked(verb, resource)).allowed:
        return f"Quarterdeck may not {verb} {resource.name}: apply deploy/rbac/quarterdeck.yaml."
    return ""
