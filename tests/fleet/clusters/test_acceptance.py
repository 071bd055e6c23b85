"""A cluster that was built anew is the one we know once a person says so, and not before."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from fleet.clusters.acceptance import CannotAccept, accept
from fleet.messages import announce, wake
from fleet.models import Bookmark, Cluster, Observer
from people.models import AuditEntry
from tests.make import NOON, a_cluster, a_fleet, a_node, a_plan


@pytest.fixture
def woken(monkeypatch) -> list:
    offered: list = []
    monkeypatch.setattr(wake, "wake_observer", lambda cluster_id, epoch: offered.append((cluster_id, epoch)))
    return offered


@pytest.fixture
def told(monkeypatch) -> list:
    """Every announcement, instead of a channel layer."""
    messages: list = []
    monkeypatch.setattr(announce, "send", lambda _, message: messages.append(message))
    return messages


@pytest.fixture
def rebuilt(db, woken, told) -> Cluster:
    cluster = a_cluster("north", foreign_uid="new")
    Observer.objects.create(cluster=cluster, epoch=7, batch=41, lease_until=NOON + timedelta(seconds=20))
    a_node(cluster)
    return cluster


def accept_it(cluster: Cluster, uid: str = "new") -> None:
    accept(cluster, uid=uid, actor="ada", reason="Rebuilt after the flood.", now=NOON)


def test_it_has_the_new_uid_and_whoever_watched_it_must_begin_again(rebuilt, woken, told):
    accept_it(rebuilt)

    observer = Observer.objects.get()
    assert (rebuilt.uid, rebuilt.foreign_uid) == ("new", "")
    assert (observer.epoch, observer.lease_until < NOON) == (8, True)
    assert Bookmark.objects.count() == 0
    assert woken == [(rebuilt.pk, 8)]
    assert [(one["prev"], one["seq"]) for one in told] == [(41, 42)]


def test_the_decision_is_kept_with_what_it_was_before(rebuilt):
    accept_it(rebuilt)

    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.actor, entry.reason) == ("cluster.accept", "ada", "Rebuilt after the flood.")
    assert entry.evidence == {"uid": "new", "before": "uid-of-north"}


def test_nobody_accepts_another_one_than_they_saw(rebuilt):
    with pytest.raises(CannotAccept, match="has the UID new, not newer"):
        accept_it(rebuilt, "newer")

    assert Cluster.objects.get().uid == "uid-of-north"


def test_one_that_changed_meanwhile_is_looked_at_again(rebuilt):
    Cluster.objects.update(foreign_uid="yet-another")  # after it was loaded

    with pytest.raises(CannotAccept, match="Read the page again"):
        accept_it(rebuilt)

    assert (Cluster.objects.get().uid, AuditEntry.objects.count()) == ("uid-of-north", 0)


def test_where_nobody_else_answers_there_is_nothing_to_accept(rebuilt):
    Cluster.objects.update(foreign_uid="")
    rebuilt.refresh_from_db()

    with pytest.raises(CannotAccept, match="so no acceptance is needed"):
        accept_it(rebuilt)


def test_a_cluster_that_is_here_already_is_no_rebuilt_one(rebuilt):
    a_cluster("south", uid="new")

    with pytest.raises(CannotAccept, match="is south, which Quarterdeck already has"):
        accept_it(rebuilt)


def test_a_plan_under_way_stands_against_it(db, woken):
    fleet = a_fleet("north")
    plan = a_plan(fleet)
    Cluster.objects.filter(pk=fleet.pk).update(foreign_uid="new")
    fleet.refresh_from_db()

    with pytest.raises(CannotAccept, match=f"#{plan.pk} “New driver”"):
        accept_it(fleet)

    fleet.refresh_from_db()
    assert (fleet.uid, fleet.foreign_uid) == ("uid-of-north", "new")
    assert Bookmark.objects.exists()


def test_the_command_accepts_what_answers_there(rebuilt, capsys):
    call_command("accept_cluster", "north", reason="Rebuilt.")

    assert Cluster.objects.get().uid == "new"
    assert "north is now the cluster new; it was uid-of-north." in capsys.readouterr().out


@pytest.mark.parametrize(("name", "uid"), [("nowhere", ""), ("north", "another")])
def test_the_command_says_why_not(rebuilt, name, uid):
    with pytest.raises(CommandError):
        call_command("accept_cluster", name, uid=uid)

    assert Cluster.objects.get().uid == "uid-of-north"
