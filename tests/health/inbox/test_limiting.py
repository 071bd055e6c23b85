"""A pool's own limits: kept with who and why, never over what somebody else wrote first."""

from datetime import timedelta

import pytest

from edges.transition_errors import LostRace
from health.inbox.pool_limits import COMPARING, LimitsAsked, put_limits, remove_limits
from health.inbox.refusals import BadAct
from health.models import PoolLimits
from people.models import AuditEntry
from tests.make import NOON, a_cluster, a_pool

pytestmark = pytest.mark.django_db
COOL = LimitsAsked(75, 80, 180, 60)


@pytest.fixture
def pool():
    return a_pool(a_cluster("eu-1"), "h100")


def put(pool, asked=COOL, *, version=None, rule="gpu-hot", reason="Old fans.", actor="ada"):
    return put_limits(pool, rule, asked, version=version, actor=actor, reason=reason, now=NOON)


def test_limits_are_kept_with_who_set_them_and_why(pool):
    row = put(pool)

    assert (row.limits.warn, row.limits.critical, row.limits.warn_after) == (75, 80, timedelta(minutes=3))
    entry = AuditEntry.objects.get(verb="limits.put")
    assert (entry.actor, entry.reason, entry.evidence["before"]) == ("ada", "Old fans.", None)
    assert entry.evidence["limits"]["critical"] == 80


def test_a_change_of_what_somebody_changed_meanwhile_is_lost(pool):
    row = put(pool)
    put(pool, LimitsAsked(76, 80, 180, 60), version=row.version, actor="amy")

    with pytest.raises(LostRace, match="Somebody has changed these limits since you read them"):
        put(pool, LimitsAsked(70, 80, 180, 60), version=row.version)
    with pytest.raises(LostRace):
        put(pool, version=None)
    for seen in (row.version, None):
        with pytest.raises(LostRace):
            remove_limits(PoolLimits.objects.get(), version=seen, actor="ada", reason="x", now=NOON)

    assert PoolLimits.objects.get().warn == 76
    assert AuditEntry.objects.filter(verb__startswith="limits.").count() == 2


def test_without_them_the_rules_own_hold_again(pool):
    remove_limits(put(pool), version=1, actor="amy", reason="New fans.", now=NOON)

    assert not PoolLimits.objects.exists()
    assert AuditEntry.objects.get(verb="limits.remove").evidence["before"]["warn"] == 75


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"rule": "gpu-xid"}, "A pool cannot set limits of this rule"),
        ({"asked": LimitsAsked(80, 75, 60)}, "above the warning"),
        ({"asked": LimitsAsked(float("nan"), None, 60)}, "From 40 to 110"),
        ({"reason": ""}, "Give a reason"),
        ({"rule": "gpu-memory-nearly-full", "asked": LimitsAsked(90, 95, 60)}, "This rule has no critical severity"),
    ],
)
def test_what_makes_no_limits_is_refused_with_why(pool, given, says):
    with pytest.raises(BadAct, match=says):
        put(pool, **given)


def test_which_rules_compare():
    assert set(COMPARING) == {
        "gpu-hot", "gpu-ecc-corrected", "gpu-pcie-replays", "gpu-nvlink-errors", "gpu-memory-nearly-full",
        "gpu-nvlink-quiet", "node-flapping", "idle-gpus",
        "gpu-power-near-limit", "pods-pending-long",
    }  # fmt: skip
