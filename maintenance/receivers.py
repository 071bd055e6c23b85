"""Sets and removes the receivers of signed repair requests. Each is recorded as a decision."""

from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.db.models import QuerySet

from fleet.models import Cluster, Pool
from health.sources.addresses import check_ca
from health.sources.posts import check_receiver
from health.sources.secrets import NoSecret, SecretPlaces
from health.telemetry.prometheus.answers import Unusable
from maintenance.models import RepairReceiver
from maintenance.refusals import BadReceiver
from people.models import AuditEntry, User

REPAIR_SECRETS = SecretPlaces("QUARTERDECK_REPAIR_", "_CLUSTERS", ".clusters", "cluster", "receiver")
GIVEN = ("address", "secret_from", "ca_file")


def set_receiver(
    cluster: Cluster, pool: Pool | None, *, address: str, secret_from: str, ca_file: str = "", actor: str, now: datetime
) -> RepairReceiver:
    """Sets the receiver of a pool, or of all other nodes of a cluster. The newest settings count.

    :raises BadReceiver: naming the field
    """
    if pool is not None and pool.cluster_id != cluster.pk:
        raise BadReceiver("pool", f"{cluster.name} has no such pool.")
    _check(address, secret_from, ca_file)
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)  # two that add one at once
        given = {"address": address, "secret_from": secret_from, "ca_file": ca_file}
        columns = given | {"changed_by": actor, "changed_at": now}
        row, _ = RepairReceiver.objects.update_or_create(cluster=cluster, pool=pool, defaults=columns)
        _record(row, "receiver.set", actor=actor, now=now)
    return row


def receivers_of(user: User | AnonymousUser) -> QuerySet[RepairReceiver]:
    """Returns the receivers of the clusters that the user may see."""
    visible = RepairReceiver.objects.filter(cluster__in=Cluster.objects.visible_to(user))
    return visible.select_related("cluster", "pool").order_by("pk")


def remove_receiver(row: RepairReceiver, *, actor: str, now: datetime) -> None:
    with transaction.atomic():
        _record(row, "receiver.remove", actor=actor, now=now)
        row.delete()


def _check(address: str, secret_from: str, ca_file: str) -> None:
    """:raises BadReceiver: naming the field"""
    if not address.startswith("https://") and not settings.NOTIFICATION_NETWORKS:
        raise BadReceiver("address", "An address begins with https://.")
    try:
        check_receiver(address)
    except Unusable as error:
        raise BadReceiver("address", str(error)) from error
    try:
        REPAIR_SECRETS.check(secret_from)
    except NoSecret as error:
        raise BadReceiver("secret_from", str(error)) from error
    if ca_file:
        try:
            check_ca(ca_file)
        except Unusable as error:
            raise BadReceiver("ca_file", str(error)) from error


def _record(row: RepairReceiver, verb: str, *, actor: str, now: datetime) -> None:
    evidence = {name: getattr(row, name) for name in GIVEN} | {"cluster": row.cluster.name}
    evidence |= {"pool": row.pool.name} if row.pool else {}
    AuditEntry.record(f"repair-receiver-{row.pk}", verb=verb, actor=actor, evidence=evidence, now=now)
