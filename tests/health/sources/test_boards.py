"""A board that came in the place of another is a line of its node's timeline, and nothing else is."""

from datetime import timedelta

import pytest

from fleet.models import NodeEvent
from health.models import GpuHour, TelemetrySource
from health.sources import boards, snapshots, source_round
from health.sources.boards import NODES_AT_MOST
from health.sources.hours import provide_partition
from health.telemetry.base import TelemetryReading
from health.telemetry.exposition import read_node
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests import make
from tests.health.exporters.reporting import hear_exporters
from tests.health.telemetry.prometheus.a_prometheus import Playing
from tests.health.telemetry.prometheus.a_server import a_server
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]
A, B, C, D = (f"GPU-{letter * 8}-0000-0000-0000-{letter * 12}" for letter in "abcd")
GONE = f"GPU {A} was replaced by {C}."


@pytest.fixture
def node():
    row = make.a_node(make.a_cluster("eu-1"), "gpu-1", gpus=2)
    snapshots.forget(row.cluster_id)
    return row


def ever_reported(node, *uuids, before=timedelta(hours=2)) -> None:
    hour = (NOON - before).replace(minute=0, second=0, microsecond=0)
    provide_partition(hour)
    for index, uuid in enumerate(uuids):
        GpuHour.objects.create(
            cluster_id=node.cluster_id, uuid=uuid, hour=hour, node_name=node.name, index=index, seen_s=3600.0
        )


def text_of(*uuids, slices=()) -> str:
    whole = [f'UUID="{uuid}",gpu="{index}"' for index, uuid in enumerate(uuids)]
    parts = [f'UUID="{uuid}",gpu="0",GPU_I_ID="{number}",GPU_I_PROFILE="1g.10gb"' for uuid, number in slices]
    return "".join(f'DCGM_FI_DEV_GPU_TEMP{{{labels},Hostname="gpu-1"}} 61\n' for labels in (*whole, *parts))


def hear(node, *uuids, at=timedelta(0), **given) -> list[str]:
    """What the timeline has of boards when its exporter has said these."""
    told = {node.name: read_node(text_of(*uuids, **given), node.name)}
    hear_exporters(node.cluster, told, nodes=[node.name], now=(NOON + at).timestamp())
    return lines()


def lines() -> list[str]:
    return list(NodeEvent.objects.filter(kind="board").order_by("pk").values_list("sentence", flat=True))


def test_a_board_in_the_place_of_another_is_told_once(node):
    ever_reported(node, A, B)
    assert hear(node, A, B, at=-timedelta(minutes=20)) == []

    assert hear(node, C, B) == [GONE]
    assert hear(node, C, B, at=timedelta(seconds=30)) == [GONE]
    (event,) = NodeEvent.objects.filter(kind="board")
    assert (event.node_uid, event.at) == (node.uid, NOON)
    assert event.detail["new"] == [{"uuid": C, "gpu": 0}]
    assert [each["uuid"] for each in event.detail["gone"]] == [A]


def test_a_prometheus_tells_of_it_too(node, settings):
    settings.TELEMETRY_LOOPBACK = True
    source_round._known.clear()
    ever_reported(node, A, B)
    before, playing = NOON - timedelta(minutes=20), Playing(0.0)
    with a_server(lambda to: playing(to)) as (url, _):
        make.a_source(node.cluster, url=url, next_look_at=before, lease_until=before)
        for at, uuids in ((before, (A, B)), (NOON, (C, B)), (NOON + timedelta(seconds=20), (C, B))):
            playing.now = at.timestamp()
            playing.series.clear()
            for index, uuid in enumerate(uuids):
                labels = {"UUID": uuid, "gpu": str(index), "Hostname": "gpu-1"}
                playing.add("DCGM_FI_DEV_GPU_TEMP", labels, 61)
            source_round.ask(node.cluster_id, clock=lambda at=at: at)

    assert TelemetrySource.objects.get().message == ""
    assert lines() == [GONE]


def test_page_and_rest_have_the_line_of_the_node_and_of_its_gpus(node):
    ever_reported(node, A, B)
    hear(node, A, B, at=-timedelta(minutes=20))
    hear(node, C, B)
    root = visiting(make.a_user("root", role="admin"))

    for of in (f"nodes/{node.pk}", f"nodes/{node.pk}/gpus/0"):
        assert GONE in page(root, f"/parts/{of}/timeline").text
        (line,) = [each for each in root.get(f"/api/v1/{of}/timeline").json() if each["sentence"] == GONE]
        assert line["kind"] == "gpus"


def test_several_at_once_are_one_line(node):
    ever_reported(node, A, B)
    hear(node, A, B, at=-timedelta(minutes=20))

    assert hear(node, C, D) == [f"2 GPUs were replaced. Removed: {A}, {B}. New: {C}, {D}."]


def test_of_a_repair_that_takes_longer_than_a_frame_remembers(node):
    """One fell off its bus on Monday, the others worked until Wednesday, and on Friday they are back with a new one."""
    ever_reported(node, A, B, before=timedelta(days=4))
    ever_reported(node, B, before=timedelta(days=2))
    other = make.a_node(node.cluster, "gpu-2")
    told = {other.name: read_node(text_of(D), other.name)}
    hear_exporters(node.cluster, told, nodes=["gpu-1", "gpu-2"], now=(NOON - timedelta(minutes=1)).timestamp())

    assert hear(node, C, B) == [GONE]


@pytest.mark.parametrize("last", [A, D], ids=["put back after a day", "another"])
def test_who_was_told_to_have_gone_may_come_again_and_goes_no_second_time(node, last):
    ever_reported(node, A, B, before=timedelta(days=9))
    hear(node, A, B, at=-timedelta(days=8))
    hear(node, C, B, at=-timedelta(days=7))
    ever_reported(node, C, B, before=timedelta(days=5))
    hear(node, C, B, at=-timedelta(hours=1))

    assert hear(node, last, B) == [GONE, f"GPU {C} was replaced by {last}."]


def test_a_board_that_is_named_and_says_nothing_has_not_come(node):
    ever_reported(node, A, B)
    devices = (GpuDevice("gpu-1", 0, C), GpuDevice("gpu-1", 1, B))
    snapshot = TelemetrySnapshot(NOON.timestamp(), devices, {"xid": MetricColumn.empty(2)})
    snapshot.columns["xid"].times[1] = snapshot.taken_at
    taken = TelemetryReading(snapshot, frozenset(), {}, came=devices[:1])

    assert boards.write(node.cluster_id, taken, now=NOON.timestamp()) == 0


def test_an_exporter_that_starts_anew_and_one_that_is_silent_swap_nothing(node):
    ever_reported(node, A, B)
    hear(node, A, B, at=-timedelta(minutes=20))
    hear(node, B, at=-timedelta(minutes=10))  # one fell off
    assert hear(node, A, B) == []
    ever_reported(node, A, B, before=timedelta(hours=30))
    assert hear(node, A, B, at=timedelta(hours=26)) == []  # all of them were forgotten by the frame


def test_a_board_that_is_partitioned_is_the_same_one(node):
    ever_reported(node, A, B)
    hear(node, A, B, at=-timedelta(minutes=20))

    assert hear(node, slices=[(A, 1), (A, 2)], at=-timedelta(minutes=10)) == []
    assert hear(node, A, B) == []


def test_where_redis_lost_the_frame_nobody_knows_what_came(node):
    ever_reported(node, A, B)

    assert hear(node, C, B) == []


@pytest.mark.parametrize(
    "now",
    [
        pytest.param((B, C, D), id="more than went"),
        pytest.param((C,), id="fewer than went"),
        pytest.param((A, B, C), id="one more than before"),
    ],
)
def test_other_numbers_are_no_swap(node, now):
    ever_reported(node, A, B)
    hear(node, A, B, at=-timedelta(minutes=20))

    assert hear(node, *now) == []


def test_another_machine_under_its_name_has_other_boards(node):
    ever_reported(node, A, B)
    hear(node, A, B, at=-timedelta(minutes=20))
    node.created_at = NOON - timedelta(minutes=5)
    node.save()

    assert hear(node, C, D) == []


def test_the_same_machine_that_joins_anew_has_no_new_boards(node):
    ever_reported(node, A, B)
    hear(node, B, at=-timedelta(minutes=20))
    node.created_at = NOON - timedelta(minutes=5)
    node.save()

    assert hear(node, A, B) == []


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (("AN1", "AN2"), ("0x1", "0x2"), []),  # named by serial numbers, and then by UUIDs
        (("AN1", "AN2"), ("AN3", "AN2"), ["GPU AN1 was replaced by AN3."]),
    ],
)
def test_of_names_that_are_no_uuids_of_nvidias_one_must_stay(node, before, now, said):
    ever_reported(node, *before)
    hear(node, *before, at=-timedelta(minutes=20))

    assert hear(node, *now) == said


@pytest.mark.parametrize(("nodes", "told"), [(NODES_AT_MOST, NODES_AT_MOST), (NODES_AT_MOST + 1, 0)])
def test_exporters_that_name_all_their_gpus_anew_swap_nothing(nodes, told, django_assert_max_num_queries):
    cluster = make.a_cluster("eu-2")
    rows = [make.a_node(cluster, f"gpu-{number}", gpus=1) for number in range(nodes)]
    for number, row in enumerate(rows):
        ever_reported(row, f"old-{number}", f"same-{number}")
    names = [(row.name, f"{kind}-{number}") for number, row in enumerate(rows) for kind in ("new", "same")]
    devices = tuple(GpuDevice(name, None, uuid) for name, uuid in names)
    snapshot = TelemetrySnapshot(NOON.timestamp(), devices, {"xid": MetricColumn.empty(len(devices))})
    for place in range(len(devices)):
        snapshot.columns["xid"].times[place] = snapshot.taken_at
    taken = TelemetryReading(snapshot, frozenset(), {}, came=devices[::2])

    with django_assert_max_num_queries(4):
        assert boards.write(cluster.pk, taken, now=NOON.timestamp()) == told
    assert len(lines()) == told
