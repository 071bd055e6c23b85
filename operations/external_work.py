"""The work of remediators and machine controllers on the nodes of a cluster, from their objects (lifecycle R18).

Their kinds are found by discovery. A kind that Quarterdeck may not list is not checked, which is no "nothing found".
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from fleet.messages import wake
from fleet.models import Cluster, ClusterMode
from gpu.external_owners import ExternalOwner
from gpu.remediations import KINDS, RemediationObject
from kube import client
from kube.structs import CustomSeen
from operations.models import ExternalWork

EVERY = timedelta(minutes=1)
NOT_ALLOWED = "Quarterdeck may not list them"
log = structlog.get_logger()


@dataclass(frozen=True)
class WorkSeen:
    by_node: Mapping[str, ExternalOwner]
    not_looked: Mapping[str, str]  # why, by kind
    absent: frozenset[str] = field(default_factory=frozenset)  # kinds that the cluster does not serve


def look_at_work(connection: client.Connection) -> WorkSeen:
    """Returns the work in flight. Costs one request in a cluster without these kinds.

    :raises ClusterError: when the cluster does not answer
    """
    served = client.find_kinds(connection, {kind: known.group for kind, known in KINDS.items()})
    by_node: dict[str, ExternalOwner] = {}
    not_looked: dict[str, str] = {}
    for kind, resource in served.items():
        try:
            for page in client.list_pages(connection, resource):
                for seen in page.items:
                    by_node.update(KINDS[kind].read(_object(kind, seen)))
                if page.unread:
                    not_looked[kind] = f"{len(page.unread)} cannot be read"
        except client.Forbidden:
            not_looked[kind] = NOT_ALLOWED
        except client.Unreadable:
            not_looked[kind] = "the list cannot be read"
        except client.Absent:
            not_looked[kind] = "the kind was removed"
    return WorkSeen(by_node, not_looked, frozenset(KINDS.keys() - served.keys()))


def _object(kind: str, seen: CustomSeen) -> RemediationObject:
    status = seen.status
    followed = {each.name for each in status.unhealthy_nodes or () if each.remediations}
    where = f"{seen.metadata.namespace}/" if seen.metadata.namespace else ""
    return RemediationObject(
        title=f"{kind} {where}{seen.name}",
        name=seen.name,
        annotations=seen.annotations,
        conditions={each.type: each.status for each in status.conditions or ()},
        is_deleted=seen.metadata.deletion_timestamp is not None,
        node=status.node_ref.name if status.node_ref else "",
        nodes=sorted(followed | set(status.in_flight_remediations or ())),
    )


def queue_looks(*, now: datetime) -> None:
    """Queues a look at each operated cluster that was not checked for `EVERY`. One query when none is due."""
    fresh = ExternalWork.objects.filter(asked_at__gt=now - EVERY).values("cluster")
    operated = Cluster.objects.filter(mode=ClusterMode.OPERATE)
    for cluster_id in operated.exclude(pk__in=fresh).values_list("pk", flat=True):
        ExternalWork.objects.update_or_create(cluster_id=cluster_id, defaults={"asked_at": now})
        given = {"cluster_id": cluster_id}
        wake.queue("operations.tasks.look_at_external_work", queue="rollouts", kwargs=given, expires=60)


def record_work(cluster_id: int, *, now: datetime) -> None:
    """Stores the work in flight in a cluster. A silent cluster changes nothing: what was seen there still counts."""
    cluster = Cluster.objects.get(pk=cluster_id)
    try:
        with closing(client.connect(cluster.kubeconfig, cluster.context)) as connection:
            seen = look_at_work(connection)
    except client.ClusterError as error:
        log.warning("the work of other controllers is not seen", cluster=cluster.name, error=str(error))
        return
    columns = {
        "by_node": {node: [owner.name, owner.does, owner.mark] for node, owner in sorted(seen.by_node.items())},
        "not_looked": seen.not_looked,
        "absent": sorted(seen.absent),
        "looked_at": now,
    }
    ExternalWork.objects.update_or_create(cluster=cluster, defaults=columns)
