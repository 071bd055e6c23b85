from datetime import timedelta

import pytest

from health.sources import intervals
from health.sources.snapshots import SnapshotsUnavailable
from tests.health.turns import give_back
from tests.make import NOON

pytestmark = pytest.mark.rounds
MINUTE = timedelta(minutes=1)
OURS, OTHER = 10**9, 10**9 + 1  # clusters that no other test has


@pytest.fixture(autouse=True)
def forgotten(redis):
    for cluster in (OURS, OTHER):
        give_back(cluster, "idle")


def is_due(at, cluster=OURS) -> bool:
    return intervals.take_due_turn(cluster, "idle", every=5 * MINUTE, now=at)


def test_it_is_due_once_within_its_time():
    assert [is_due(NOON + minute * MINUTE) for minute in (0, 1, 4, 5, 6, 10)] == [True, False, False, True, False, True]


def test_each_cluster_has_a_turn_of_its_own():
    assert is_due(NOON)
    assert is_due(NOON, OTHER)


def test_a_clock_that_was_set_back_does_not_wait_for_what_it_said_before():
    assert is_due(NOON + 60 * MINUTE)
    assert is_due(NOON)


def test_where_redis_is_away_it_says_so(settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"

    with pytest.raises(SnapshotsUnavailable):
        is_due(NOON)
