"""What a GPU said is not over because nobody hears it now: it fell off, was renumbered, replaced, cut, or forgotten."""

from datetime import timedelta

import pytest

from fleet.models import Node
from health.exporters.snapshots import updated_snapshot
from health.inbox import rule_mutes
from health.lifecycle import FindingState
from health.models import Finding
from health.sources import snapshots
from health.telemetry.exposition import read_node
from health.telemetry.identity import Whereabouts, silenced
from health.telemetry.snapshot import GpuDevice, TelemetrySnapshot, in_order
from tests.health.evaluation.saying import DEVICES, MINUTE, looked, open_ones
from tests.make import NOON, a_node, a_pod, a_pool, an_operand
from tests.variants import nightly_but_first

pytestmark = [pytest.mark.django_db, pytest.mark.rounds]
NODES = frozenset({"gpu-001", "gpu-002"})
OTHERS = tuple(GpuDevice("gpu-002", index, f"O-{index}") for index in range(2))
HOT = ("gpu-hot", "GPU 3 of gpu-001", "critical")
XID = ("gpu-xid", "GPU 3 of gpu-001", "critical")


def energy(joules: float) -> dict[int, float]:
    return dict.fromkeys(range(8), joules)


def cut(index: int) -> list[GpuDevice]:
    return [GpuDevice("gpu-001", index, f"GPU-{index}", part, "1g.10gb") for part in ("7", "8", "9")]


@pytest.fixture
def renumbered(say):
    """GPU 0 has fallen off, its node was booted, and the driver counts the others from 0."""
    say(NOON)
    say.devices = in_order(
        [DEVICES[0], *(GpuDevice("gpu-001", device.index - 1, device.uuid) for device in DEVICES[1:])]
    )
    return say


@pytest.mark.nightly
def test_two_boards_of_one_number_have_a_finding_each(renumbered):
    say, fallen = renumbered, renumbered.devices.index(DEVICES[0])
    say(NOON + MINUTE, xid={fallen: 79})

    second = [device.uuid for device in say.devices].index("GPU-1")
    for minutes in (20, 22):
        say(NOON + minutes * MINUTE, silent={fallen}, xid={second: 48})

    assert set(open_ones()) == {
        ("gpu-silent", "GPU GPU-0 of gpu-001", "critical"),
        ("gpu-xid", "GPU GPU-0 of gpu-001", "critical"),
        ("gpu-xid", "GPU 0 of gpu-001", "critical"),
    }


def test_a_mute_is_of_the_board_and_not_of_its_number(say):
    say(NOON)
    say(NOON + MINUTE, xid={0: 79})
    until = NOON + timedelta(days=1)
    of_it = rule_mutes.scoped(Finding.objects.get(rule="gpu-xid"), "finding")
    rule_mutes.mute(of_it, actor="ada", reason="RMA.", until=until, now=NOON + MINUTE)
    say.devices = in_order(
        [DEVICES[0], *(GpuDevice("gpu-001", device.index - 1, device.uuid) for device in DEVICES[1:])]
    )
    fallen, second = say.devices.index(DEVICES[0]), [device.uuid for device in say.devices].index("GPU-1")

    say(NOON + 2 * MINUTE, silent={fallen}, xid={second: 79})

    told = dict(Finding.objects.filter(rule="gpu-xid").values_list("gpu_uuid", "state"))
    assert told == {"GPU-0": FindingState.MUTED, "GPU-1": FindingState.OPEN}


@pytest.mark.nightly
def test_one_that_has_the_number_of_a_fallen_one_falls_too(renumbered):
    say, first = renumbered, renumbered.devices.index(DEVICES[0])
    for minutes in (3, 5):
        say(NOON + minutes * MINUTE, silent={first})
    second = [device.uuid for device in say.devices].index("GPU-1")

    for minutes in (60, 62):
        say(NOON + minutes * MINUTE, silent={first, second})

    silent = Finding.objects.open().filter(rule="gpu-silent")
    assert {finding.gpu_uuid for finding in silent} == {"GPU-0", "GPU-1"}


@pytest.mark.nightly
def test_a_board_that_another_took_the_place_of_is_not_missed(say):
    Node.objects.update(gpu_expected=8)
    say(NOON)
    say(NOON + MINUTE, xid={3: 79})
    say.devices = in_order([*DEVICES, GpuDevice("gpu-001", 3, "GPU-new")])
    old = say.devices.index(DEVICES[3])

    for minutes in (30, 32, 34):
        say(NOON + minutes * MINUTE, silent={old})

    assert open_ones() == []


@pytest.mark.parametrize("then", nightly_but_first([0, 45, 43, 13]))
def test_an_xid_of_the_hardware_is_over_with_a_reset_not_with_another_one(say, then):
    """An Xid does not outlive its fault, and another Xid does not end it (R73.1)."""
    say(NOON, energy_joules=energy(1000))
    say(NOON + MINUTE, xid={3: 48}, energy_joules=energy(1100))

    say(NOON + 2 * MINUTE, xid={3: then}, energy_joules=energy(1200))

    assert open_ones() == [XID]
    assert Finding.objects.get().facts["xid"] == 48
    say(NOON + 3 * MINUTE, xid={3: then}, energy_joules=energy(1200) | {3: 5.0})
    assert ("gpu-xid", "GPU 3 of gpu-001", "critical") not in open_ones()


def test_where_nothing_is_counted_the_gauge_is_believed_once_it_shows_none(say):
    say(NOON)
    say(NOON + MINUTE, xid={3: 48})
    say(NOON + 2 * MINUTE, xid={3: 45})
    assert open_ones() == [XID]

    say(NOON + 3 * MINUTE)

    assert open_ones() == []


def test_a_board_that_the_frame_forgot_is_still_missed(say):
    say(NOON)
    for minutes in (1, 2, 4):
        say(NOON + minutes * MINUTE, silent={3})
    say.devices = tuple(device for device in DEVICES if device.index != 3)

    say(NOON + timedelta(hours=25))

    assert open_ones() == [("gpu-silent", "GPU 3 of gpu-001", "critical")]


@pytest.mark.nightly
def test_nothing_is_over_reason_redis_lost_it(say):
    say(NOON)
    say(NOON + MINUTE, xid={3: 79})
    for minutes in (3, 4, 5):
        say(NOON + minutes * MINUTE, silent={3})
    snapshots.forget(say.cluster.pk)
    say.devices = tuple(device for device in DEVICES if device.index != 3)
    say.snapshot = TelemetrySnapshot(NOON.timestamp(), say.devices)

    say(NOON + 6 * MINUTE)

    assert [rule for rule, *_ in open_ones()] == ["gpu-silent", "gpu-xid"]


def test_nothing_is_over_reason_an_exporter_names_the_gpu_of_another_node(say):
    def said(node: str, **xids: int):
        lines = [
            f'DCGM_FI_DEV_XID_ERRORS{{gpu="{at}",UUID="{one}"}} {xid}' for at, (one, xid) in enumerate(xids.items())
        ]
        return {node: read_node("\n".join(lines), node)}

    a_node(say.cluster, "gpu-002")
    now = NOON.timestamp()
    first = updated_snapshot(
        TelemetrySnapshot(now, ()), said("gpu-001", a=79, b=0) | said("gpu-002", c=0), nodes=NODES, now=now
    )
    snapshots.store(say.cluster.pk, first)
    looked(say.cluster, NOON)

    two = said("gpu-001", a=79, b=0) | said("gpu-002", a=0, c=0)
    snapshots.store(say.cluster.pk, updated_snapshot(first.snapshot, two, nodes=NODES, now=now + 30))
    looked(say.cluster, NOON + MINUTE / 2)

    assert open_ones() == [("gpu-xid", "GPU 0 of gpu-001", "critical")]


@pytest.mark.nightly
def test_what_its_slices_all_say_of_a_board_is_one_finding_and_so_is_its_fall(say):
    say.devices = in_order([*cut(0), *cut(1)])
    say(NOON)
    say(NOON + MINUTE, xid={0: 79, 1: 79, 2: 79})
    assert open_ones() == [("gpu-xid", "GPU 0 of gpu-001", "critical")]

    fallen = silenced(say.snapshot, cut(1), Whereabouts(NODES), since=0)
    say.devices = in_order([*cut(1), *fallen])
    for minutes in (3, 5):
        say(NOON + minutes * MINUTE, silent={0, 1, 2})

    assert open_ones() == [
        ("gpu-silent", "GPU 0 of gpu-001", "critical"),
        ("gpu-xid", "GPU 0 of gpu-001", "critical"),
    ]


@pytest.mark.nightly
def test_a_full_slice_is_a_finding_of_its_own(say):
    a_pool(say.cluster, workload_class="development").nodes.add(Node.objects.get())
    say.devices = in_order(cut(0))
    free, used = {0: 100.0, 1: 9000.0, 2: 9000.0}, {0: 9900.0, 1: 1000.0, 2: 1000.0}

    for minutes in range(0, 60, 5):
        say(NOON + minutes * MINUTE, memory_used_mib=used, memory_free_mib=free)

    assert open_ones() == [("gpu-memory-nearly-full", "GPU 0 of gpu-001, slice 7 (1g.10gb)", "note")]


@pytest.mark.nightly
def test_a_share_whose_whole_is_not_heard_any_more_stays(say):
    a_pool(say.cluster, workload_class="development").nodes.add(Node.objects.get())
    say.devices = say.devices[:1]
    for minutes in range(0, 20, 5):
        say.only(NOON + minutes * MINUTE, power_watts={0: 699.0}, power_limit_watts={0: 700.0})
    found = [("gpu-power-near-limit", "GPU 0 of gpu-001", "note")]
    assert open_ones() == found

    for minutes in range(20, 40, 5):
        say.only(NOON + minutes * MINUTE, power_watts={0: 100.0})
    assert open_ones() == found

    say.only(NOON + 40 * MINUTE, power_watts={0: 100.0}, power_limit_watts={0: 700.0})
    assert open_ones() == []


def test_slices_of_a_node_whose_driver_is_replaced_wait(say):
    a_node(say.cluster, "gpu-002")
    say.devices = in_order([*cut(0), *OTHERS])
    say(NOON)
    say(NOON + MINUTE, xid={0: 79, 1: 79, 2: 79})
    Node.objects.filter(name="gpu-001").update(upgrade_state="pod-restart-required")
    say.devices = OTHERS

    say(NOON + 2 * MINUTE)

    assert open_ones() == [("gpu-xid", "GPU 0 of gpu-001", "critical")]


def test_slices_go_with_another_layout_of_their_board(say):
    say.devices = in_order(cut(0))
    say(NOON)
    say(NOON + MINUTE, memory_used_mib={0: 1.0}, xid={0: 48, 1: 48, 2: 48})
    assert silenced(say.snapshot, [GpuDevice("gpu-001", 0, "GPU-0", "1", "7g.80gb")], Whereabouts(NODES), since=0) == []


def test_nothing_is_over_while_its_own_metric_is_not_said(say):
    for minutes in (0, 5):
        say(NOON + minutes * MINUTE, temperature_celsius={3: 90})
    others = {place: 60.0 for place in range(8) if place != 3}

    for minutes in (7, 9):
        say.only(NOON + minutes * MINUTE, temperature_celsius=others, xid=dict.fromkeys(range(8), 0.0))

    assert open_ones() == [HOT]
    say(NOON + 10 * MINUTE)
    assert open_ones() == []


def test_nothing_is_over_reason_its_series_were_switched_off(say):
    say(NOON, ecc_uncorrected={3: 2.0})
    opened = open_ones()

    for minutes in (1, 3, 5):
        say.only(NOON + minutes * MINUTE, temperature_celsius=dict.fromkeys(range(8), 60.0), ecc_uncorrected={})

    assert opened == open_ones() != []


def test_a_fallen_gpu_is_silent_still_when_its_whole_node_is(say):
    """A GPU whose series are gone is found (R73.4)."""
    a_node(say.cluster, "gpu-002")
    say.devices = in_order([*DEVICES, *OTHERS])
    say(NOON)
    for minutes in (1, 3, 5):
        say(NOON + minutes * MINUTE, silent={3})
    assert open_ones() == [("gpu-silent", "GPU 3 of gpu-001", "critical")]

    for minutes in (8, 12):
        say(NOON + minutes * MINUTE, silent=set(range(8)))

    assert ("gpu-silent", "GPU 3 of gpu-001", "critical") in open_ones()


def test_a_node_that_is_silent_for_more_than_a_day_was_heard(say):
    a_node(say.cluster, "gpu-002")
    say.devices = in_order([*DEVICES, *OTHERS])
    say(NOON)
    for minutes in (3, 6):
        say(NOON + minutes * MINUTE, silent=set(range(8)))
    later = NOON + timedelta(hours=25)
    assert silenced(say.snapshot, OTHERS, Whereabouts(NODES), since=later.timestamp() - 86400) == []
    say.devices = OTHERS

    say(later)

    silent = Finding.objects.get(rule="exporter-silent")
    assert (silent.severity, silent.fingerprint) == ("warning", "silent")
    assert Node.objects.get(name="gpu-001").unresolved == 1


def test_where_every_series_is_left_out_no_node_is_held_against_others(say):
    """A source that answers, and of whose devices none is a node's of this cluster."""
    say.devices = ()
    for minutes in (0, 3):
        say.only(NOON + minutes * MINUTE, temperature_celsius={})

    never = Finding.objects.get(rule="exporter-silent")
    assert (never.severity, never.state) == ("note", "open")
    assert never.title == "No GPU telemetry from gpu-001 yet"
    assert never.summary.startswith("No other node has telemetry now.")


def test_one_unit_of_a_limit_is_no_slowdown(say):
    say(NOON, throttled_board={})

    for minutes in (1, 5, 12, 20):
        say(NOON + minutes * MINUTE, throttled_board={3: 1.0})

    assert open_ones() == []


@pytest.mark.nightly
def test_a_limit_that_goes_on_is_a_slowdown_until_it_ends(say):
    say(NOON, throttled_board={})
    for minutes in range(1, 13):
        say(NOON + minutes * MINUTE, throttled_board={3: minutes * 1e6})
    assert open_ones() == [("gpu-throttled", "GPU 3 of gpu-001", "warning")]

    for minutes in (13, 15):
        say(NOON + minutes * MINUTE, throttled_board={3: 12e6})

    assert open_ones() == []


@pytest.mark.nightly
def test_one_sample_that_is_less_is_no_growth_afterwards(say):
    for at, replays in enumerate((5000.0, 5000.0, 0.0, 5000.0, 5000.0, 5000.0)):
        say(NOON + at * MINUTE, pcie_replays={3: replays}, energy_joules=energy(1000.0 + at))

    assert not Finding.objects.filter(rule="gpu-pcie-replays").exists()


@pytest.mark.nightly
def test_a_counter_that_stays_less_grows_from_nothing(say):
    for at, replays in enumerate((5000.0, 5000.0, 0.0, 3000.0, 6000.0, 9000.0)):
        say(NOON + at * MINUTE, pcie_replays={3: replays}, energy_joules=energy(1000.0 + at))

    assert Finding.objects.filter(rule="gpu-pcie-replays").exists()


def test_a_node_is_silent_still_when_nobody_listens_any_more(say):
    other = a_node(say.cluster, "gpu-002")
    an_operand(say.cluster, "dcgm-exporter", desired=2)
    a_pod(other, "exporter", namespace="gpu-operator", gpus=0, operand="dcgm-exporter")
    say.devices = in_order([*DEVICES, *OTHERS])
    say(NOON)
    for minutes in (2, 5, 8):
        say(NOON + minutes * MINUTE, silent=set(range(8)))
    told = {"exporter-silent", "operand-down"}
    assert {rule for rule, _, _ in open_ones()} == told

    for minutes in (12, 20):
        looked(say.cluster, NOON + minutes * MINUTE)
    assert {rule for rule, _, _ in open_ones()} == told

    say(NOON + 30 * MINUTE)
    assert open_ones() == []
