"""A pool is deleted: what people had said of it ends in so many words, and none of it without an entry."""

from datetime import timedelta

import pytest

from fleet.models import Pool
from fleet.pools.changes import PoolInUse, delete_pool, going_with
from health.inbox import pool_limits, rule_mutes
from health.inbox.pool_limits import LimitsAsked, put_limits
from health.inbox.refusals import FindingRefusal
from health.lifecycle import FindingState
from health.models import Mute, PoolLimits
from operations.models import Freeze
from people.models import AuditEntry
from tests.make import NOON, a_cluster, a_finding, a_node, a_pool, a_user
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
UNTIL = NOON + timedelta(hours=8)
SAID = ("Its limits of gpu-hot are removed.", "Its mute of rule gpu-hot until 2026-11-21 20:00 UTC is lifted.")


@pytest.fixture
def pool():
    return a_pool(a_cluster("eu-1"), "h100")


@pytest.fixture
def limits(pool):
    asked = LimitsAsked(75, 80, 180, 60)
    return put_limits(pool, "gpu-hot", asked, version=None, actor="ada", reason="Old fans.", now=NOON)


@pytest.fixture
def muted(pool):
    finding = a_finding(pool.cluster, "GPU 3 of gpu-1", node=a_node(pool.cluster, "gpu-1", pool=pool), rule="gpu-hot")
    row = rule_mutes.scoped(finding, "pool", pool=pool)
    rule_mutes.mute(row, actor="ada", reason="Known.", until=UNTIL, now=NOON)
    return finding


def test_the_limits_of_a_pool_that_goes_are_kept_as_those_that_are_taken_away(pool, limits):
    delete_pool(pool, actor="root", now=NOON)

    assert not PoolLimits.objects.exists()
    entry = AuditEntry.objects.get(subject="limits:gpu-hot", verb="limits.remove")
    assert (entry.actor, entry.reason) == ("root", "The pool was deleted.")
    assert (entry.evidence["pool"], entry.evidence["before"]["warn"]) == ("h100", 75)


def test_what_was_muted_in_a_pool_that_goes_is_open_again(pool, muted):
    mute = Mute.objects.get()

    delete_pool(pool, actor="root", now=NOON)

    muted.refresh_from_db()
    assert muted.state == FindingState.OPEN
    entry = AuditEntry.objects.get(subject=mute.mark, verb="mute.lift")
    assert (entry.actor, entry.reason, entry.evidence["of"]) == ("root", "The pool was deleted.", "pool eu-1/h100")


def test_the_pools_own_entry_says_what_it_was_and_what_went_with_it(pool, limits, muted):
    delete_pool(pool, actor="root", now=NOON)

    said = AuditEntry.objects.get(verb="pool.delete").evidence
    assert (said["name"], said["max_unavailable"], tuple(said["with_it"])) == ("h100", 1, SAID)


def test_who_is_about_to_delete_it_reads_what_goes_with_it(pool, limits, muted):
    said = page(visiting(a_user("root", role="admin")), f"/pools/{pool.pk}/delete").text

    assert all(sentence in said for sentence in SAID)


def test_who_may_not_delete_it_reads_no_more_than_they_see(pool, limits, muted):
    assert "gpu-hot" not in page(visiting(a_user("pat", role="viewer", on=pool)), f"/pools/{pool.pk}/delete").text


def test_a_pool_that_has_to_stay_keeps_all_of_it(pool, limits, muted):
    Freeze.objects.create(cluster=pool.cluster, pool=pool, by="ada", at=NOON, reason="Holidays.")

    with pytest.raises(PoolInUse):
        delete_pool(pool, actor="root", now=NOON)

    assert tuple(going_with(pool, now=NOON)) == SAID
    assert not AuditEntry.objects.filter(verb__in=("limits.remove", "mute.lift", "pool.delete")).exists()


def test_a_mute_that_went_with_its_pool_is_not_there_to_be_lifted(pool, muted):
    row = Mute.objects.get()
    delete_pool(pool, actor="root", now=NOON)

    with pytest.raises(FindingRefusal, match="The mute ended with its pool"):
        rule_mutes.lift(row, actor="ada", reason="Mended.", now=NOON)


def test_what_somebody_ends_meanwhile_keeps_no_pool(pool, limits, muted, monkeypatch):
    """Its mutes and limits were read while they were there still."""
    mutes, of_it = list(rule_mutes._mutes_of_pool(pool, NOON)), list(pool_limits._limits_of_pool(pool))
    rule_mutes.lift(Mute.objects.get(), actor="ada", reason="Mended.", now=NOON)
    pool_limits.remove_limits(limits, version=limits.version, actor="ada", reason="Mended.", now=NOON)
    monkeypatch.setattr(rule_mutes, "_mutes_of_pool", lambda *_: mutes)
    monkeypatch.setattr(pool_limits, "_limits_of_pool", lambda *_: of_it)

    delete_pool(pool, actor="root", now=NOON)

    assert not Pool.objects.exists()
    ended = AuditEntry.objects.filter(verb__in=("limits.remove", "mute.lift"))
    assert set(ended.values_list("actor", flat=True)) == {"ada"}
