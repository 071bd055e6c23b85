"""A person's decision that the cluster at a known address is the same one, rebuilt.

It takes the new UID. The next lease removes the old rows; the timeline stays.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from fleet.freshness.kinds import NODES
from fleet.messages import announce, wake
from fleet.models import Bookmark, Cluster, Observer
from people.models import AuditEntry

Objection = Callable[[Cluster], str]
OBJECTIONS: list[Objection] = []  # of apps above this one; a blank sentence is no objection


class CannotAccept(Exception):
    """The refusal of an acceptance: no other cluster answers, another UID is meant, or something depends on the old
    one."""


def accept(cluster: Cluster, *, uid: str, actor: str, reason: str, now: datetime) -> None:
    """Accepts the rebuilt cluster. `uid` is the cluster that the person saw, so that nobody accepts another one.

    :raises CannotAccept: with a sentence; nothing was changed
    """
    _check(cluster, uid)
    with transaction.atomic():
        # Locks its row before its observer's, as everywhere, and without its key, since row writers reference it.
        known = Cluster.objects.filter(pk=cluster.pk, uid=cluster.uid, foreign_uid=uid)
        if known.select_for_update(no_key=True).first() is None:
            raise CannotAccept(f"Another cluster now answers at the address of {cluster.name}. Read the page again.")
        if objection := next(filter(None, (object_to(cluster) for object_to in OBJECTIONS)), ""):
            raise CannotAccept(objection)
        # The current observer loses its lease, since its data is of the old cluster or was refused.
        freed = {"epoch": F("epoch") + 1, "batch": F("batch") + 1, "lease_until": now - timedelta(seconds=1)}
        freed |= {"failures": 0, "failing_since": None, "next_look_at": None}
        Observer.objects.filter(cluster=cluster).update(**freed)
        observer = Observer.objects.filter(cluster=cluster).first()
        known.update(uid=uid, foreign_uid="")
        Bookmark.objects.filter(cluster=cluster).delete()
        evidence = {"uid": uid, "before": cluster.uid}
        AuditEntry.record(
            f"cluster:{cluster.pk}", verb="cluster.accept", actor=actor, reason=reason, evidence=evidence, now=now
        )
    cluster.refresh_from_db()
    if observer is not None:
        _announce(observer, now=now)


def _check(cluster: Cluster, uid: str) -> None:
    if not cluster.foreign_uid:
        raise CannotAccept(f"No other cluster answers at the address of {cluster.name}, so no acceptance is needed.")
    if uid != cluster.foreign_uid:
        raise CannotAccept(
            f"The cluster at the address of {cluster.name} has the UID {cluster.foreign_uid}, not {uid}."
        )
    other = Cluster.objects.filter(uid=uid).first()
    if other is not None:
        raise CannotAccept(
            f"The cluster at the address of {cluster.name} is {other.name}, which Quarterdeck already has. "
            "Correct the address."
        )


def _announce(observer: Observer, *, now: datetime) -> None:
    wake.wake_observer(observer.cluster_id, observer.epoch)
    seq, kinds = observer.batch, ("bookmarks", NODES)
    announce.cluster_changed(observer.cluster_id, seq=seq, prev=seq - 1, nodes=(), kinds=kinds, at=now)


def try_now(cluster: Cluster) -> None:
    epoch = Observer.try_now(cluster.pk)
    if epoch is not None:
        wake.wake_observer(cluster.pk, epoch)
