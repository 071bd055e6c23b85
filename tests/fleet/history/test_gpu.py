"""The history of one GPU: its placements and its lines, and which of its node's are not its own."""

from datetime import timedelta

import pytest

from fleet.history.lines import POD, Span, lines_of
from fleet.history.placements import GpuPlacement, on_gpu
from fleet.models import PodPlacement
from fleet.web.gpu_page import MOST_LANES, SPAN, WIDE, bars_of
from tests import make
from tests.fleet.history.test_placements import placed
from tests.make import NOON

HOUR = timedelta(hours=1)
ONE = {"nvidia.com/gpu": 1}


@pytest.fixture
def node(db):
    return make.a_node(make.a_cluster(), "gpu-1", gpus=8)


@pytest.fixture
def gpu(node):
    return node.gpus.select_related("node__cluster").get(index=3)


def seen(gpu, **given) -> list[tuple[str, bool]]:
    found = on_gpu(gpu, **{"since": NOON - 72 * HOUR, "now": NOON, "most": 9} | given)
    return [(one.row.name, one.is_known) for one in found]


def test_who_is_told_to_be_on_others_is_not_on_it_and_who_nothing_tells_may_be(node, gpu):
    placed(node, "mine", since=9, until=8, boards=[2, 3])
    placed(node, "others", since=7, until=6, boards=[4], resources=ONE)
    placed(node, "whose", since=5, until=4)

    assert seen(gpu) == [("whose", False), ("mine", True)]


def test_who_holds_it_now_is_told_as_of_now(node, gpu):
    gpu.uuid = "GPU-d"
    gpu.save()
    make.a_pod(node, "here", uid="uid-of-here", gpus=1, devices={"nvidia.com/gpu": ["GPU-d"]})
    placed(node, "here", since=2, resources=ONE)
    node.gpus.filter(index=4).update(uuid="GPU-e")
    make.a_pod(node, "there", uid="uid-of-there", gpus=1, devices={"nvidia.com/gpu": ["GPU-e"]})
    placed(node, "there", since=1, resources=ONE)

    assert seen(gpu) == [("here", True)]


def test_only_the_newest_that_are_its_own_and_none_from_before(node, gpu):
    for number in range(6):
        placed(node, f"other-{number}", since=number + 1, until=0, boards=[0], resources=ONE)
    placed(node, "new", since=20, until=19, boards=[3])
    placed(node, "old", since=30, until=29, boards=[3])
    placed(node, "before", since=90, until=80, boards=[3])

    assert seen(gpu) == [("new", True), ("old", True)]
    assert seen(gpu, most=1) == [("new", True)]


def test_whoever_asked_for_two_billion_of_each_is_among_those_of_whom_nothing_tells(node, gpu):
    type(node).objects.filter(pk=node.pk).update(expected={"amd.com/gpu": 8})
    node.refresh_from_db()
    asked = {"nvidia.com/gpu": 2**31 - 1, "amd.com/gpu": 2**31 - 1}
    placed(node, "greedy", since=2, until=1, boards=[4], resources=asked)

    assert seen(node.gpus.get(index=3)) == [("greedy", False)]


def test_its_timeline_leaves_out_pods_of_others_and_says_what_nothing_tells(node, gpu):
    placed(node, "mine", since=9, until=8, boards=[3])
    placed(node, "others", since=7, until=6, boards=[4], resources=ONE)
    placed(node, "whose", since=5)
    user = make.a_user("ada", role="viewer")

    assert [line.sentence for line in lines_of(node, user, Span(frozenset({POD}), gpu=gpu))] == [
        "ml/whose has 2 nvidia.com/gpu. It is unknown whether it had this GPU.",
        "ml/mine is gone: it had GPU 3 (2 nvidia.com/gpu) for 1 h.",
        "ml/mine has GPU 3 (2 nvidia.com/gpu).",
    ]
    assert "Nothing tells" not in lines_of(node, user, Span(frozenset({POD})))[0].sentence


def a_bar(since: float, until: float | None = None, *, gpus: tuple[int, ...] = (3,), seen_until: float | None = None):
    """Hours before noon."""
    at = lambda ago: None if ago is None else NOON - ago * HOUR  # noqa: E731
    row = PodPlacement(pk=1, since=at(since), until=at(until), seen_until=at(seen_until))
    return GpuPlacement(row, gpus, bool(gpus), row.seen_until)


def bars(*placements):
    return bars_of(list(placements), begin=NOON - SPAN, end=NOON)


def test_one_after_another_is_one_lane_and_two_at_once_are_two():
    drawn = bars(a_bar(36, 24), a_bar(24, 12), a_bar(30, 18))

    assert sorted((bar.x, bar.width, bar.lane) for bar in drawn) == [
        (432.0, 144.0, 0), (504.0, 144.0, 1), (576.0, 144.0, 0),
    ]  # fmt: skip


def test_what_nothing_tells_is_below_and_what_began_before_is_cut_off():
    known, unknown = bars(a_bar(100), a_bar(12, gpus=()))

    assert (known.x, known.width, known.lane) == (0, WIDE, 0)
    assert (unknown.lane, unknown.placement.is_known) == (1, False)


def test_what_is_there_is_known_until_its_cluster_was_last_heard():
    (bar,) = bars(a_bar(48, seen_until=36))

    assert (bar.x, bar.width, bar.tail_x, bar.tail) == (288.0, 144.0, 432.0, 432.0)


def test_what_nobody_looked_at_is_a_tail_of_its_own():
    (bar,) = bars(a_bar(48, 12, seen_until=36))

    assert (bar.x, bar.width, bar.tail_x, bar.tail) == (288.0, 144.0, 432.0, 288.0)


def test_no_more_lanes_than_can_be_seen():
    assert len(bars(*[a_bar(5) for _ in range(40)])) == MOST_LANES
