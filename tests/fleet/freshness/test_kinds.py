from datetime import timedelta

import pytest
import yaml

from fleet.freshness.cluster import cluster_freshness
from fleet.freshness.kinds import Freshness, freshness_of, rule_for
from fleet.models import Bookmark
from fleet.models.kinds import MIRRORED
from kube.resources import SCALING_STATUS
from tests.make import NOON


def a_mark(state: str, *, heard_ago_s: float | None = None, has_listed: bool = True, message: str = "") -> Bookmark:
    last_seen_at = None if heard_ago_s is None else NOON - timedelta(seconds=heard_ago_s)
    listed_at = NOON - timedelta(hours=1) if has_listed else None
    return Bookmark(
        kind="nodes", state=state, state_since=NOON, last_seen_at=last_seen_at, listed_at=listed_at, message=message
    )


@pytest.mark.parametrize(
    ("mark", "state"),
    [
        (a_mark("watching", heard_ago_s=0), Freshness.LIVE),
        (a_mark("watching", heard_ago_s=90), Freshness.LIVE),
        (a_mark("watching", heard_ago_s=91), Freshness.STALE),
        (a_mark("failing", heard_ago_s=10), Freshness.FAILING),
        (a_mark("failing", heard_ago_s=300), Freshness.STALE),
        (a_mark("failing", has_listed=False), Freshness.NEVER),
        (a_mark("listing", heard_ago_s=1, has_listed=False), Freshness.LOADING),
        (a_mark("listing", heard_ago_s=300), Freshness.STALE),
        (a_mark("forbidden", heard_ago_s=1), Freshness.FORBIDDEN),
        (a_mark("absent"), Freshness.ABSENT),
    ],
)
def test_where_a_kind_stands(mark, state):
    assert freshness_of(mark, now=NOON).state == state


@pytest.mark.parametrize(
    ("mark", "word", "is_trouble"),
    [
        (a_mark("watching", heard_ago_s=0), "fresh", False),
        (a_mark("failing", heard_ago_s=10), "failing", True),
        (a_mark("failing", heard_ago_s=300), "stale", True),
        (a_mark("failing", has_listed=False), "failing", True),
        (a_mark("listing", heard_ago_s=1, has_listed=False), "loading", True),
        (a_mark("listing", heard_ago_s=1), "fresh", False),
        (a_mark("forbidden", heard_ago_s=1), "not permitted", True),
        (a_mark("absent"), "not installed", False),
    ],
)
def test_what_a_page_calls_that(mark, word, is_trouble):
    found = freshness_of(mark, now=NOON)

    assert (found.word, found.is_trouble) == (word, is_trouble)


def test_a_rule_that_a_cluster_may_leave_out_is_no_trouble():
    mark = a_mark("forbidden", heard_ago_s=1)
    mark.kind = SCALING_STATUS.name

    found = freshness_of(mark, now=NOON)

    assert (found.glyph, found.word, found.is_trouble) == ("unseen", "not permitted", False)


def test_kinds_stand_in_the_order_of_the_table_and_what_nobody_knows_any_more_stands_last():
    marks = [a_mark("watching", heard_ago_s=1) for _ in range(3)]
    for mark, kind in zip(marks, ("retired.example.com", "events", "nodes"), strict=True):
        mark.kind = kind

    assert list(cluster_freshness(marks, now=NOON).by_kind) == ["nodes", "pods", "events", "retired.example.com"]


def test_a_clock_that_is_ahead_makes_no_negative_age():
    assert freshness_of(a_mark("watching", heard_ago_s=-3), now=NOON).age_s == 0.0


def test_a_stale_kind_says_since_when_and_why():
    found = freshness_of(a_mark("failing", heard_ago_s=300, message="Connection refused."), now=NOON)

    assert found.sentence == "Nodes were last observed at 2026-11-21 11:55:00 UTC. Connection refused."


def test_kinds_nobody_watched_are_said_to_be_unseen():
    found = cluster_freshness([], now=NOON).by_kind

    assert {kind: row.state for kind, row in found.items()} == {"nodes": Freshness.NEVER, "pods": Freshness.NEVER}
    assert not found["nodes"].is_known


def test_a_forbidden_kind_says_since_when_and_which_rule_would_allow_it():
    found = freshness_of(a_mark("forbidden", message="nodes is forbidden: User “x” cannot list it."), now=NOON)

    assert found.sentence.startswith("Nodes may not be read here since 2026-11-21 12:00:00 UTC. nodes is forbidden")
    assert yaml.safe_load(found.rule) == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
    ]
    assert freshness_of(a_mark("watching", heard_ago_s=0), now=NOON).rule == ""


def test_a_kind_that_is_not_installed_says_so_and_needs_no_rule():
    found = freshness_of(a_mark("absent", message="This API server serves no nodes."), now=NOON)

    assert found.sentence == "Nodes are not installed in this cluster. This API server serves no nodes."
    assert found.rule == ""


@pytest.mark.parametrize("kind", MIRRORED)
def test_every_rule_is_one_that_can_be_pasted(kind):
    (rule,) = yaml.safe_load(rule_for(kind))

    assert rule["resources"] == [kind.partition(":")[0].partition(".")[0]]
    assert rule["apiGroups"] == [kind.partition(":")[0].partition(".")[2]]


def test_the_operators_config_maps_are_allowed_by_a_role_and_not_to_the_whole_cluster():
    assert rule_for("configmaps:mig").startswith("# of a Role in the namespace of the GPU operator")
    assert "get" not in yaml.safe_load(rule_for("configmaps:mig"))[0]["verbs"]


def test_a_live_kind_says_how_many_of_it_cannot_be_read_and_names_none():
    """Who sees one pool reads this of all nodes and pods of the cluster."""
    mark = a_mark("watching", heard_ago_s=1)
    mark.unread = {str(n): {"name": f"gpu-{n}", "reason": "Expected `str`, got `int`"} for n in range(5)}

    sentence = freshness_of(mark, now=NOON).sentence

    assert sentence == "Nodes are live. 5 of them cannot be read and are shown in their last state, if any."


@pytest.mark.parametrize(("number", "says"), [(1, "1"), (19, "19"), (20, "20 or more")])
def test_no_more_is_known_than_is_kept_of_what_cannot_be_read(number, says):
    mark = a_mark("watching", heard_ago_s=1)
    mark.unread = {str(n): {"name": f"gpu-{n}", "reason": "It is too long."} for n in range(number)}

    assert f"Nodes are live. {says} of them cannot be read" in freshness_of(mark, now=NOON).sentence


def test_a_list_that_takes_its_time_says_since_when():
    mark = a_mark("listing", heard_ago_s=300)
    mark.state_since = NOON - timedelta(seconds=200)

    assert "A new list was requested at 2026-11-21 11:56:40 UTC and is not complete." in (
        freshness_of(mark, now=NOON).sentence
    )
