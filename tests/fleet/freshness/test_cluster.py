from datetime import timedelta

from fleet.freshness.cluster import cluster_freshness
from fleet.models import Bookmark
from tests.make import NOON


def a_mark(kind="nodes", *, heard=timedelta(seconds=5), state="watching", is_listed=True, message=""):
    last_seen_at = None if heard is None else NOON - heard
    return Bookmark(
        kind=kind,
        state=state,
        state_since=NOON,
        last_seen_at=last_seen_at,
        listed_at=last_seen_at if is_listed else None,
        message=message,
    )


def test_is_fresh_while_its_nodes_were_heard_of_lately():
    assert cluster_freshness([a_mark()], now=NOON).is_fresh


def test_says_since_when_nothing_was_heard():
    seen = cluster_freshness([a_mark(heard=timedelta(minutes=4))], now=NOON)

    assert not seen.is_fresh
    assert seen.sentence.startswith("Not observed since 11:56:00 UTC")


def test_a_cluster_nobody_observes_is_no_empty_cluster():
    seen = cluster_freshness([], now=NOON)

    assert seen.sentence == "No worker observes the cluster yet."
    assert not seen.has_begun


def test_a_list_that_is_not_complete_is_not_fresh():
    seen = cluster_freshness([a_mark(state="listing", is_listed=False)], now=NOON)

    assert seen.sentence == "Its nodes are being listed for the first time."
    assert seen.kinds[0].word == "loading"
    assert seen.is_loading


def test_forbidden_and_not_installed_are_told_apart():
    kinds = cluster_freshness(
        [a_mark(), a_mark("pods", state="forbidden"), a_mark("x", state="absent")], now=NOON
    ).kinds

    assert [kind.word for kind in kinds] == ["fresh", "not permitted", "not installed"]


def test_troubles_are_the_kinds_that_somebody_should_look_at():
    seen = cluster_freshness(
        [
            a_mark(),
            a_mark("pods", state="forbidden", is_listed=False),
            a_mark("jobs.batch", heard=timedelta(minutes=4)),
            a_mark("gpuclusters.nvidia.com", state="absent", is_listed=False),
        ],
        now=NOON,
    )

    assert [kind.kind for kind in seen.troubles] == ["pods", "jobs.batch"]


def test_a_cluster_that_is_not_seen_says_so_once_and_not_for_each_kind():
    seen = cluster_freshness(
        [
            a_mark(heard=timedelta(minutes=4)),
            a_mark("pods", heard=timedelta(minutes=4)),
            a_mark("events", state="forbidden", is_listed=False),
        ],
        now=NOON,
    )

    assert [kind.kind for kind in seen.troubles] == ["events"]


def test_of_rows_no_kind_is_live_while_the_cluster_does_not_answer():
    seen = cluster_freshness([a_mark(state="failing"), a_mark("pods")], now=NOON)

    assert [kind.word for kind in seen.kinds] == ["failing", "fresh"]
    assert {kind: said.state for kind, said in seen.by_kind.items()} == {"nodes": "failing", "pods": "failing"}
    assert seen.by_kind["pods"].sentence == (
        "Pods were last observed at 2026-11-21 11:59:55 UTC, and their cluster does not answer now."
    )
    assert seen.pods_as_of == NOON - timedelta(seconds=5)


def test_pods_stay_live_where_it_answers_and_its_nodes_may_not_be_read():
    seen = cluster_freshness([a_mark(state="forbidden"), a_mark("pods")], now=NOON)

    assert not seen.is_fresh
    assert seen.by_kind["pods"].state == "live"
    assert seen.pods_as_of is None
