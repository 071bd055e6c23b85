"""Checks before any write that the cluster is the right one and that no other Quarterdeck writes to it (Z10)."""

import uuid
from contextlib import suppress
from datetime import datetime, timedelta

from fleet.models import Cluster, ClusterMode
from kube import client
from kube.structs import LeaseSeen
from operations.models import WriterLease

LEASE_NAME = "quarterdeck"
LEASE_FOR = timedelta(seconds=60)
TRIES = 4  # another plan of ours may write it between our read and our write


class Forfeit(Exception):
    """We may not write to the cluster. The plan pauses with the reason."""


def take_writer_lease(connection: client.Connection, cluster: Cluster, *, now: datetime) -> None:
    """Checks the cluster and renews our Lease in it.

    The counter rises in our row before it rises in the Lease, so that a Lease ahead of our row has one meaning only.

    :raises Forfeit: for an observed-only cluster, another cluster, another Quarterdeck, or an old copy of our database
    :raises ClusterError: when the cluster does not answer
    """
    if cluster.mode != ClusterMode.OPERATE:
        raise Forfeit(f"Quarterdeck may not change {cluster.name}: its mode is {cluster.mode}.")
    if (uid := client.kube_system_uid(connection)) != cluster.uid:
        raise Forfeit(f"Another cluster now answers at the address of {cluster.name} (kube-system {uid}).")
    for _ in range(TRIES - 1):
        with suppress(client.Conflict):
            return _renew(connection, cluster, now=now)
    return _renew(connection, cluster, now=now)


def take_over(connection: client.Connection, cluster: Cluster, *, now: datetime) -> None:
    """Takes the Lease for a database from a backup. The counter rises above that of the database that wrote since,
    which is therefore the old copy from now on.

    :raises Forfeit: as `take_writer_lease`, except for an old copy
    :raises ClusterError: when the cluster does not answer
    """
    lease, mine = client.get_lease(connection, cluster.own_namespace, LEASE_NAME), _our_row(cluster)
    if lease is not None and lease.spec.holder_identity == mine.instance:
        ahead = lease.spec.lease_transitions or 0
        WriterLease.objects.filter(pk=mine.pk, epoch__lt=ahead).update(epoch=ahead)
    take_writer_lease(connection, cluster, now=now)


def _renew(connection: client.Connection, cluster: Cluster, *, now: datetime) -> None:
    """Renews the Lease after reading it again, since another Quarterdeck may have written it."""
    # The Lease first: a worker beside us counts in the row before it counts in the Lease, so that a row read later is
    # never behind it.
    lease = client.get_lease(connection, cluster.own_namespace, LEASE_NAME)
    mine = _our_row(cluster)
    if lease is not None and (reason := _why_not_ours(cluster, mine, lease, now=now)):
        raise Forfeit(reason)
    _count(mine)
    acquired = lease.spec.acquire_time if lease and lease.spec.holder_identity == mine.instance else None
    spec = client.lease_spec(
        holder=mine.instance,
        seconds=int(LEASE_FOR.total_seconds()),
        acquired_at=acquired or now,
        now=now,
        transitions=mine.epoch,
    )
    try:
        if lease is None:
            client.create_lease(connection, cluster.own_namespace, LEASE_NAME, spec)
        else:
            client.replace_lease(connection, lease, spec)
    except client.Absent as gone:
        sentence = f"{cluster.name} has no namespace {cluster.own_namespace}: apply deploy/rbac/quarterdeck.yaml."
        raise Forfeit(sentence) from gone


def _our_row(cluster: Cluster) -> WriterLease:
    if mine := WriterLease.objects.filter(cluster=cluster).order_by().first():
        return mine
    known = WriterLease.objects.values_list("instance", flat=True).first()
    made, _ = WriterLease.objects.get_or_create(cluster=cluster, defaults={"instance": known or str(uuid.uuid4())})
    return made


def _count(mine: WriterLease) -> None:
    """Increments the counter; concurrent workers get different numbers."""
    while not WriterLease.objects.filter(pk=mine.pk, epoch=mine.epoch).update(epoch=mine.epoch + 1):
        mine.refresh_from_db(fields=["epoch"])
    mine.epoch += 1


def why_not_ours(cluster: Cluster, lease: LeaseSeen, *, now: datetime) -> str:
    return _why_not_ours(cluster, _our_row(cluster), lease, now=now)


def _why_not_ours(cluster: Cluster, mine: WriterLease, lease: LeaseSeen, *, now: datetime) -> str:
    if lease.spec.holder_identity == mine.instance:
        is_ahead = (lease.spec.lease_transitions or 0) > mine.epoch
        return (
            f"{cluster.name} has newer writes of Quarterdeck than this database, so the database is an old copy."
            if is_ahead
            else ""
        )
    renewed = lease.spec.renew_time
    if renewed is not None and now - renewed < LEASE_FOR:
        return f"Another Quarterdeck ({lease.spec.holder_identity}) drives {cluster.name}."
    return ""
