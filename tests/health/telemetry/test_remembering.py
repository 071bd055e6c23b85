from array import array

from hypothesis import given
from hypothesis import strategies as st

from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from health.telemetry.snapshot_memory import (
    CHECKPOINT_S,
    Growth,
    grown_an_hour,
    grown_by,
    growth,
    remember,
    restarted_devices,
)

A = GpuDevice("gpu-1", 0, "GPU-a")
NOW = 10_000.0


def followed(*steps: tuple[float, float], key: str = "pcie_replays") -> TelemetrySnapshot:
    """The frame after one device said each value at each time."""
    snapshot = TelemetrySnapshot(steps[0][0], (A,))
    for at, value in steps:
        before = snapshot.carried((A,), forget_before=0.0)
        snapshot = before.copied()
        snapshot.taken_at = at
        column = snapshot.columns.setdefault(key, MetricColumn.empty(1))
        column.values[0], column.times[0] = value, at
        remember(before, snapshot)
    return snapshot


def test_knows_how_much_a_counter_grew():
    assert growth(followed((NOW, 5), (NOW + 60, 12)), "pcie_replays", 0) == Growth(7.0, NOW)


def test_what_was_there_at_the_first_look_is_no_growth():
    assert growth(followed((NOW, 500)), "pcie_replays", 0) == Growth(0.0, NOW)


def test_tells_of_the_last_half_to_whole_hour():
    steps = [(NOW + minute * 60, float(minute)) for minute in range(121)]

    grown = growth(followed(*steps), "pcie_replays", 0)

    assert CHECKPOINT_S <= steps[-1][0] - grown.since <= 2 * CHECKPOINT_S
    assert grown.amount == (steps[-1][0] - grown.since) / 60


def test_a_counter_that_began_anew_grew_from_nothing():
    """A driver that is loaded resets what is volatile (Z21)."""
    assert growth(followed((NOW, 500), (NOW + 60, 0), (NOW + 120, 3)), "pcie_replays", 0).amount == 3.0


def test_a_counter_that_began_anew_twice_grew_from_nothing_however_soon_it_was_looked_at_after_the_first():
    """What it had come to at the checkpoint is of the time before, and it passes that within a period."""
    snapshot = followed((NOW, 100), (NOW + 60, 1000), (NOW + 120, 400), key="energy_joules")

    assert growth(snapshot, "energy_joules", 0).amount == 400.0
    assert snapshot.checkpoints[0].values["energy_joules"][0] == 0.0


def test_of_a_device_that_began_anew_a_counter_that_still_says_what_it_said_did_not_grow():
    """Its series was asked for a scrape earlier, or is away for now."""
    before = counted(NOW, energy_joules=500.0, ecc_corrected=300.0)
    remember(TelemetrySnapshot(NOW - 15, (A,)), before)

    snapshot = counted(NOW + 15, energy_joules=2.0, ecc_corrected=300.0)
    snapshot.columns["ecc_corrected"].times[0] = NOW

    assert remember(before, snapshot) == [0]
    assert growth(snapshot, "ecc_corrected", 0).amount == 0.0


def test_nobody_can_tell_of_a_series_that_is_new():
    snapshot = followed((NOW, 1.0), key="temperature_celsius")

    assert growth(snapshot, "pcie_replays", 0) is None
    assert grown_by(snapshot, "pcie_replays", 1) == []


def test_finds_whoever_grew():
    snapshot = followed((NOW, 5), (NOW + 60, 12))

    assert grown_by(snapshot, "pcie_replays", 7) == [0]
    assert grown_by(snapshot, "pcie_replays", 8) == []


def test_what_grew_while_nobody_listened_is_not_all_of_one_hour():
    """A source that is silent for a night has ten hours' replays of a sound link, and they were told as an hour's."""
    hour = [(NOW + 60 * minute, 1000 + minute / 6) for minute in range(61)]
    snapshot = followed(*hour, (NOW + 11 * 3600, 1110.0))

    grown = growth(snapshot, "pcie_replays", 0)
    assert (grown.amount, grown.hours, grown.an_hour) == (100.0, 10.0, 10.0)
    assert grown_by(snapshot, "pcie_replays", 100) == [0]
    assert grown_an_hour(snapshot, "pcie_replays", 100) == []
    assert grown_an_hour(snapshot, "pcie_replays", 10) == [0]


def test_what_grew_while_one_was_silent_is_not_all_of_one_hour():
    """Of its node alone, as others were heard: what it has at a checkpoint is of before."""
    steps = [(NOW + 60 * minute, 1000.0) for minute in range(61)]
    snapshot = followed(*steps)
    for at in range(61, 661):
        before = snapshot.carried((A,), forget_before=0.0)
        snapshot = before.copied()
        snapshot.taken_at = NOW + 60 * at
        if at == 660:
            snapshot.columns["pcie_replays"] = MetricColumn(array("d", [1100.0]), array("d", [snapshot.taken_at]))
        remember(before, snapshot)

    grown = growth(snapshot, "pcie_replays", 0)
    assert (grown.amount, grown.since, grown.an_hour) == (100.0, NOW + 3600, 10.0)
    assert grown_an_hour(snapshot, "pcie_replays", 100) == []


def test_a_round_that_is_late_makes_no_more_than_an_hour():
    steps = [(NOW + 45 * number, float(number)) for number in range(200)]

    frames = [followed(*steps[:number]) for number in range(1, len(steps), 7)]
    assert {growth(snapshot, "pcie_replays", 0).hours for snapshot in frames} == {1.0}


def counted(at: float, **values: float) -> TelemetrySnapshot:
    snapshot = TelemetrySnapshot(at, (A,))
    for key, value in values.items():
        snapshot.columns[key] = MetricColumn(array("d", [value]), array("d", [at]))
    return snapshot


def test_who_counts_from_nothing_again_was_reset():
    before = counted(NOW, energy_joules=500.0, pcie_replays=3.0, rows_remapped_corrected=1.0)

    reset = counted(NOW + 15, energy_joules=2.0, pcie_replays=0.0, rows_remapped_corrected=1.0)
    glitch = counted(NOW + 15, energy_joules=510.0, pcie_replays=0.0, rows_remapped_corrected=1.0)
    stale = counted(NOW, energy_joules=500.0, pcie_replays=3.0)
    assert restarted_devices(before, reset) == [0]
    assert restarted_devices(before, glitch) == []
    assert restarted_devices(before, stale) == []
    assert restarted_devices(counted(NOW), reset) == []


def test_of_two_exporters_of_one_gpu_the_one_that_is_behind_is_no_reset():
    """An operator's beside a cloud's: each collects every 30 s by itself, and is heard by turns."""
    earlier = counted(NOW, energy_joules=9_000_000.0, throttled_board=700.0)

    assert restarted_devices(earlier, counted(NOW + 15, energy_joules=8_990_000.0)) == []
    assert restarted_devices(earlier, counted(NOW + 15, energy_joules=8_990_000.0, throttled_board=690.0)) == []
    assert restarted_devices(earlier, counted(NOW + 15, energy_joules=8_000_000.0)) == [
        0
    ]  # loaded anew while it was silent
    assert restarted_devices(earlier, counted(NOW + 15, energy_joules=90.0, throttled_board=0.0)) == [0]
    assert restarted_devices(counted(NOW, energy_joules=900.0), counted(NOW + 15, energy_joules=90.0)) == [0]


def test_an_xid_outlasts_that_two_exporters_of_its_gpu_are_heard_by_turns():
    snapshot = TelemetrySnapshot(NOW, (A,))
    for number, joules in enumerate((1e7, 1e7 + 6e3, 1e7 + 1e3, 1e7 + 12e3)):
        at = NOW + 15 * number
        before = snapshot.carried((A,), forget_before=0.0)
        snapshot = before.copied()
        snapshot.taken_at = at
        for key, value in (("energy_joules", joules), ("pcie_replays", 0.0), ("xid", (0.0, 79.0, 45.0, 45.0)[number])):
            snapshot.columns[key] = MetricColumn(array("d", [value]), array("d", [at]))
        assert remember(before, snapshot) == []

    assert sorted(snapshot.past_xids[A.key]) == [45, 79]


def test_knows_since_when_an_xid_is_the_last():
    snapshot = followed((NOW, 0), (NOW + 60, 79), (NOW + 120, 79), key="xid")

    assert snapshot.latched["xid"][0] == NOW + 60


def test_an_xid_that_came_again_is_remembered_with_its_last_time():
    """The same Xid again is seen (R73.2)."""
    snapshot = followed((NOW, 0), (NOW + 60, 63), (NOW + 120, 48), (NOW + 9_000, 63), (NOW + 9_060, 48), key="xid")

    past = snapshot.past_xids[A.key]
    assert {number: each.since for number, each in past.items()} == {63: NOW + 9_000, 48: NOW + 9_060}


def test_an_xid_that_was_there_at_the_first_look_is_so_since_who_knows():
    since = followed((NOW, 79), (NOW + 60, 79), key="xid").latched["xid"][0]

    assert since != since


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60))
def test_never_says_that_a_counter_shrank(values):
    snapshot = followed(*((NOW + 600.0 * number, float(value)) for number, value in enumerate(values)))

    assert growth(snapshot, "pcie_replays", 0).amount >= 0
