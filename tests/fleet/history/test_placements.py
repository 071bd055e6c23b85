"""The pods of a node in its history: as lines, at a moment, and for who may see the node."""

from datetime import timedelta

import pytest

from fleet.history.lines import POD, Span, lines_of
from fleet.history.moment import moment_of
from fleet.models import GoneNode, PodPlacement
from fleet.retention import tidy
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
PODS = Span(frozenset({POD}))


@pytest.fixture
def node():
    row = make.a_node(make.a_cluster(), "gpu-1", gpus=8)
    make.a_node_event(row, "Seen for the first time.", at=NOON - timedelta(days=2), detail={"ready": True})
    return row


@pytest.fixture
def ada():
    return make.a_user("ada", role="viewer")


def placed(node, name: str, *, since: int, until: int | None = None, **given) -> PodPlacement:
    """Hours before noon."""
    row = {
        "node_uid": node.uid, "node_name": node.name, "pod_uid": f"uid-of-{name}", "namespace": "ml", "name": name,
        "resources": {"nvidia.com/gpu": 2}, "since": NOON - timedelta(hours=since),
        "until": None if until is None else NOON - timedelta(hours=until),
    }  # fmt: skip
    return PodPlacement.objects.create(cluster_id=node.cluster_id, **row | given)


def test_lines_say_what_it_held_how_it_ended_and_for_how_long(node, ada):
    placed(node, "old", since=5, until=3, ended="Error", boards=[0, 4])
    placed(node, "now", since=2)

    assert [line.sentence for line in lines_of(node, ada, PODS)] == [
        "ml/now has 2 nvidia.com/gpu.",
        "ml/old ended (Error): it had GPU 0, 4 (2 nvidia.com/gpu) for 2 h.",
        "ml/old has GPU 0, 4 (2 nvidia.com/gpu).",
    ]


def test_of_one_that_is_there_still_is_told_which(node, ada):
    gpu = node.gpus.get(index=3)
    gpu.uuid = "GPU-d"
    gpu.save()
    make.a_pod(node, "now", uid="uid-of-now", gpus=1, devices={"nvidia.com/gpu": ["GPU-d"]})
    placed(node, "now", since=2, resources={"nvidia.com/gpu": 1})

    assert lines_of(node, ada, PODS)[0].sentence == "ml/now has GPU 3 (1 nvidia.com/gpu)."


def test_a_moment_names_who_was_there_then_and_nobody_else(node, ada):
    placed(node, "before", since=9, until=7)
    placed(node, "then", since=8, until=1)
    placed(node, "still", since=7)
    placed(node, "later", since=3)
    placed(make.a_node(node.cluster, "gpu-2"), "elsewhere", since=8)

    then = moment_of(node, ada, NOON - timedelta(hours=5), now=NOON)

    assert [one.sentence.split()[0] for one in then.true_then if one.kind == POD] == ["ml/then", "ml/still"]


@pytest.mark.parametrize("state", ["failing", "forbidden"])
def test_whom_nobody_has_seen_since_was_there_as_far_as_anybody_looked(node, ada, state):
    """Its nodes are heard, so that the rest of that moment is known."""
    last_seen_at = NOON - timedelta(hours=4)
    node.cluster.bookmarks.filter(kind="pods").update(state=state, last_seen_at=last_seen_at)
    placed(node, "train", since=5)

    before, after = (moment_of(node, ada, last_seen_at + timedelta(hours=hours), now=NOON) for hours in (-0.5, 1))

    assert [one.sentence for one in before.true_then if one.kind == POD] == ["ml/train had 2 nvidia.com/gpu."]
    (was,) = [one for one in after.true_then if one.kind == POD]
    assert was.sentence == (
        "ml/train had 2 nvidia.com/gpu when it was last seen, at 2026-11-21 08:00 UTC, and it was not observed since."
    )
    assert (was.until, was.seen_until) == (None, last_seen_at)


def test_an_end_that_nobody_saw_is_told_as_that(node, ada):
    placed(node, "train", since=60, until=1, seen_until=NOON - timedelta(hours=50))

    (ended, _) = lines_of(node, ada, PODS)
    then = moment_of(node, ada, NOON - timedelta(hours=20), now=NOON)

    assert "and was last seen at" in ended.sentence
    assert "for at least 10 h" in ended.sentence
    assert "when it was last seen, at" in next(one.sentence for one in then.true_then if one.kind == POD)


def test_pods_do_not_bury_what_else_happened_around_a_moment(node, ada):
    for number in range(120):
        placed(node, f"job-{number}", since=6, until=5)
    make.a_node_event(node, "Cordoned.", at=NOON - timedelta(hours=5, minutes=10), detail={}, kind="cordon")

    then = moment_of(node, ada, NOON - timedelta(hours=5), now=NOON)

    assert [line.sentence for line in then.around] == ["Cordoned."]


def test_a_node_that_left_keeps_them(node, ada):
    gone = GoneNode.objects.create(
        node_id=node.pk, cluster=node.cluster, uid=node.uid, name=node.name, gone_at=NOON, was={}
    )
    placed(node, "old", since=5, until=0, boards=[1])
    node.delete()

    assert "ml/old is gone: it had GPU 1" in lines_of(gone, ada, PODS)[0].sentence


def test_they_are_kept_as_long_as_the_timeline_and_never_while_they_last(node):
    placed(node, "old", since=24 * 900, until=24 * 800)
    placed(node, "young", since=24 * 900, until=1)
    placed(node, "long", since=24 * 900)

    tidy(now=NOON)

    assert set(PodPlacement.objects.values_list("name", flat=True)) == {"young", "long"}


def test_page_and_rest_have_them_for_who_sees_the_node(node, ada):
    placed(node, "old", since=5, until=3)
    path = f"/api/v1/nodes/{node.pk}/timeline?kind=pod"

    (ended, began) = calling(ada).get(path).json()
    assert (ended["kind"], ended["detail"]["pod"], ended["detail"]["gpus"]) == ("pod", "ml/old", [])
    assert began["at"] < ended["at"]
    assert "ml/old is gone" in page(visiting(ada), f"/nodes/{node.pk}/history?kind=pod").text
    assert calling(make.a_user("eve")).get(path).status_code == 404
    assert "ml/old" not in page(visiting(ada), f"/parts/nodes/{node.pk}/timeline").text
