"""Redis is emptied: what GPUs have had, and their gauges hide, is known from findings that are open."""

import math
from datetime import timedelta

import pytest
from redis import Redis

from fleet.models import Observer
from health.inbox import acts
from health.models import Finding
from health.sources.xid_recall import recall_xids
from health.telemetry.exposition import read_node
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests.health.evaluation.saying import looked
from tests.health.exporters.reporting import hear_exporters
from tests.make import NOON, a_cluster, a_finding, a_node

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
BOARD = GpuDevice("gpu-001", 2, "GPU-2")


@pytest.fixture
def cluster():
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    a_node(cluster, "gpu-001")
    return cluster


def reporting_devices(
    cluster, at, *, xid: int | None, replays: int = 0, joules: int = 0, words: str = "", counted: tuple[int, ...] = ()
) -> None:
    """`xid`: None: its exporter does not say it. `counted`: what it counted within its window."""
    labels = f'gpu="2",UUID="GPU-2",err_msg="{words}"' if words else 'gpu="2",UUID="GPU-2"'
    lines = [f"DCGM_FI_DEV_XID_ERRORS{{{labels}}} {xid}"] if xid is not None else []
    lines += [f'DCGM_EXP_XID_ERRORS_COUNT{{gpu="2",UUID="GPU-2",xid="{number}"}} 1' for number in counted]
    lines.append(f'DCGM_FI_DEV_PCIE_REPLAY_COUNTER{{gpu="2",UUID="GPU-2"}} {replays}')
    lines.append(f'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="2",UUID="GPU-2"}} {joules * 1000}')
    hear_exporters(cluster, {"gpu-001": read_node("\n".join(lines), "gpu-001")}, nodes={"gpu-001"}, now=at.timestamp())
    looked(cluster, at)


def unresolved() -> list[tuple[int, str]]:
    return [(row.facts["xid"], row.state) for row in Finding.objects.unresolved().filter(rule="gpu-xid")]


def lose(redis: str) -> None:
    Redis.from_url(redis).flushall()


@pytest.mark.nightly
@pytest.mark.parametrize("hiding", [45, 31], ids=["one that is ignored", "one that is less bad"])
def test_what_the_gauge_hides_is_not_over_when_redis_is_emptied(cluster, redis, hiding):
    reporting_devices(cluster, NOON, xid=0, replays=1)
    reporting_devices(cluster, NOON + MINUTE, xid=79, replays=1, words="GPU has fallen off")
    reporting_devices(cluster, NOON + 2 * MINUTE, xid=hiding, replays=1)
    before = Finding.objects.get(rule="gpu-xid")

    lose(redis)
    reporting_devices(cluster, NOON + 3 * MINUTE, xid=hiding, replays=1)

    after = Finding.objects.get(rule="gpu-xid")
    assert (after.state, after.fingerprint, after.severity) == (before.state, before.fingerprint, "critical")


def test_what_the_gauge_still_shows_is_as_old_as_it_was(cluster, redis):
    reporting_devices(cluster, NOON, xid=0, replays=1)
    reporting_devices(cluster, NOON + MINUTE, xid=79, replays=1)
    found = Finding.objects.get(rule="gpu-xid")
    acts.acknowledge(found, actor="ada", now=NOON + MINUTE)

    lose(redis)
    reporting_devices(cluster, NOON + 2 * MINUTE, xid=79, replays=1)

    after = Finding.objects.get(rule="gpu-xid")
    assert (after.state, after.fingerprint) == ("acknowledged", found.fingerprint)


def test_it_ends_when_the_gpu_begins_anew(cluster, redis):
    reporting_devices(cluster, NOON, xid=0, replays=5)
    reporting_devices(cluster, NOON + MINUTE, xid=79, replays=5)
    lose(redis)
    reporting_devices(cluster, NOON + 2 * MINUTE, xid=45, replays=5)
    assert unresolved() == [(79, "open")]

    reporting_devices(cluster, NOON + 3 * MINUTE, xid=0, replays=0)

    assert unresolved() == []


def test_it_ends_where_nothing_is_counted_and_the_gauge_shows_none(cluster, redis):
    reporting_devices(cluster, NOON, xid=79)
    lose(redis)

    reporting_devices(cluster, NOON + MINUTE, xid=0)

    assert unresolved() == []


def test_an_applications_passes_as_it_would_have(cluster, redis):
    reporting_devices(cluster, NOON, xid=0, replays=1)
    reporting_devices(cluster, NOON + MINUTE, xid=31, replays=1)
    lose(redis)

    reporting_devices(cluster, NOON + 60 * MINUTE, xid=31, replays=1)
    assert unresolved() == [(31, "open")]
    reporting_devices(cluster, NOON + 62 * MINUTE, xid=31, replays=1)

    assert unresolved() == []


@pytest.mark.parametrize(
    ("replays", "joules", "is_over"),
    [(0, 40, True), (3, 40, True), (5, 40, False), (0, 9_100, False)],
    ids=["all begins anew", "all is less", "one counter goes on", "its energy goes on"],
)
def test_it_ends_with_a_reset_in_the_same_gap_as_its_counters_tell(cluster, redis, replays, joules, is_over):
    reporting_devices(cluster, NOON, xid=0, replays=5, joules=9_000)
    reporting_devices(cluster, NOON + MINUTE, xid=79, replays=5, joules=9_010)
    lose(redis)

    reporting_devices(cluster, NOON + 3 * MINUTE, xid=0, replays=replays, joules=joules)

    assert unresolved() == ([] if is_over else [(79, "open")])


def test_what_the_gauge_shows_after_a_reset_is_neither_over_nor_new(cluster, redis):
    reporting_devices(cluster, NOON, xid=0, joules=9_000)
    reporting_devices(cluster, NOON + MINUTE, xid=79, joules=9_010)
    before = Finding.objects.get(rule="gpu-xid")
    lose(redis)

    reporting_devices(cluster, NOON + 3 * MINUTE, xid=79, joules=40)

    after = Finding.objects.get(rule="gpu-xid")
    assert (after.pk, after.state, after.fingerprint, after.times) == (before.pk, "open", before.fingerprint, 1)


@pytest.mark.nightly
def test_a_gauge_that_is_back_a_round_late_shows_what_was_there_before(cluster, redis):
    reporting_devices(cluster, NOON, xid=0, replays=1)
    reporting_devices(cluster, NOON + MINUTE, xid=31, replays=1)
    before = Finding.objects.get(rule="gpu-xid")
    lose(redis)
    reporting_devices(cluster, NOON + 2 * MINUTE, xid=None, replays=1)

    reporting_devices(cluster, NOON + 3 * MINUTE, xid=31, replays=1)

    assert unresolved() == [(31, "open")]
    assert Finding.objects.get(rule="gpu-xid").fingerprint == before.fingerprint


def a_frame(*devices: GpuDevice) -> TelemetrySnapshot:
    snapshot = TelemetrySnapshot(NOON.timestamp(), devices)
    snapshot.columns["xid"] = MetricColumn.empty(len(devices))
    return snapshot


def had(cluster, **given) -> None:
    evidence = {"xid": 79, "words": "GPU has fallen off the bus", "at_least": 1} | given
    node = cluster.nodes.get()
    a_finding(cluster, "GPU 2 of gpu-001", node=node, rule="gpu-xid", gpu_uuid="GPU-2", facts=evidence)


def test_each_of_the_others_is_known_with_its_own_time(cluster):
    weeks_before = NOON - timedelta(days=21)
    had(cluster, others={"31": None, "63": weeks_before.isoformat()}, since=NOON.isoformat())
    snapshot = a_frame(BOARD)

    recall_xids(cluster.pk, None, snapshot)

    past = snapshot.past_xids[BOARD.key]
    assert (past[63].since, past[79].since) == (weeks_before.timestamp(), NOON.timestamp())
    assert math.isnan(past[31].since)


def test_the_others_of_a_finding_of_before_are_known_by_their_numbers(cluster):
    had(cluster, others=[31, 63], since=NOON.isoformat())
    snapshot = a_frame(BOARD)

    recall_xids(cluster.pk, None, snapshot)

    at = NOON.timestamp()
    assert {number: past.since for number, past in snapshot.past_xids[BOARD.key].items()} == {31: at, 63: at, 79: at}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("booted_at", "is_over"),
    [(NOON - 7 * MINUTE, False), (NOON + 2 * MINUTE, True)],
    ids=["before it", "since then"],
)
@pytest.mark.parametrize("xid_at_first", [0, 79], ids=["seen to come", "there at the first look"])
def test_it_ends_with_a_boot_of_its_node_also_where_redis_is_emptied_in_the_same_gap(
    cluster, redis, xid_at_first, booted_at, is_over
):
    reporting_devices(cluster, NOON, xid=xid_at_first, replays=5)
    reporting_devices(cluster, NOON + MINUTE, xid=79, replays=5)
    lose(redis)
    cluster.nodes.update(booted_at=booted_at)

    reporting_devices(cluster, NOON + 3 * MINUTE, xid=45, replays=5)

    assert unresolved() == ([] if is_over else [(79, "open")])


@pytest.mark.nightly
def test_it_ends_with_a_boot_that_is_seen_late(cluster, redis):
    reporting_devices(cluster, NOON, xid=0, replays=5)
    reporting_devices(cluster, NOON + MINUTE, xid=79, replays=5)
    lose(redis)
    reporting_devices(cluster, NOON + 2 * MINUTE, xid=45, replays=5)
    assert unresolved() == [(79, "open")]

    cluster.nodes.update(booted_at=NOON + 2 * MINUTE)
    reporting_devices(cluster, NOON + 3 * MINUTE, xid=45, replays=5)

    assert unresolved() == []


def test_a_finding_of_before_says_no_time(cluster):
    had(cluster)
    snapshot = a_frame(BOARD)

    recall_xids(cluster.pk, None, snapshot)

    assert math.isnan(snapshot.past_xids[BOARD.key][79].since)


def test_one_that_comes_late_is_known_too(cluster):
    had(cluster)
    other = GpuDevice("gpu-001", 3, "GPU-3")
    snapshot = a_frame(BOARD, other)

    recall_xids(cluster.pk, a_frame(other), snapshot)

    assert snapshot.past_xids.keys() == {BOARD.key}


@pytest.mark.parametrize("device", [GpuDevice("gpu-002", 2, "GPU-2"), GpuDevice("gpu-001", 2, "GPU-9")])
def test_another_board_or_one_in_another_node_has_had_none(cluster, device):
    had(cluster)
    snapshot = a_frame(device)

    recall_xids(cluster.pk, None, snapshot)

    assert snapshot.past_xids == {}


def test_what_a_frame_remembers_is_asked_of_nobody(cluster, django_assert_num_queries):
    had(cluster)
    cut = a_frame(GpuDevice("gpu-001", 2, "GPU-2", "3", "1g.10gb"))

    with django_assert_num_queries(0):
        recall_xids(cluster.pk, a_frame(BOARD), cut)  # in another shape: its frame says what becomes of them

    assert cut.past_xids == {}


@pytest.mark.nightly
@pytest.mark.parametrize("gauge", [45, None], ids=["a gauge that shows another", "no gauge"])
def test_what_was_counted_is_not_over_when_its_window_is(cluster, redis, gauge):
    """The processes that a fault ends leave a 45 each, within one look of the exporter: its gauge shows the last."""
    reporting_devices(cluster, NOON, xid=0 if gauge else None, replays=1, joules=10_000)
    reporting_devices(cluster, NOON + MINUTE, xid=gauge, replays=1, joules=10_500, counted=(48, 45))
    assert unresolved() == [(48, "open")]

    reporting_devices(cluster, NOON + 7 * MINUTE, xid=gauge, replays=1, joules=12_000)
    assert unresolved() == [(48, "open")]

    reporting_devices(cluster, NOON + 9 * MINUTE, xid=0 if gauge else None, joules=100)
    assert unresolved() == []


def test_what_is_counted_of_before_a_reset_does_not_outlast_it(cluster, redis):
    """Its exporter goes on counting it for as long as its window is."""
    reporting_devices(cluster, NOON, xid=0, replays=1, joules=10_000)
    reporting_devices(cluster, NOON + MINUTE, xid=45, replays=1, joules=10_500, counted=(48,))
    reporting_devices(cluster, NOON + 2 * MINUTE, xid=0, joules=100, counted=(48,))

    reporting_devices(cluster, NOON + 8 * MINUTE, xid=0, joules=1_000)

    assert unresolved() == []


def test_an_applications_that_was_counted_passes_with_its_window(cluster, redis):
    reporting_devices(cluster, NOON, xid=0, replays=1, joules=10_000)
    reporting_devices(cluster, NOON + MINUTE, xid=45, replays=1, joules=10_500, counted=(13, 45))
    assert unresolved() == [(13, "open")]

    reporting_devices(cluster, NOON + 7 * MINUTE, xid=45, replays=1, joules=12_000)

    assert unresolved() == []
