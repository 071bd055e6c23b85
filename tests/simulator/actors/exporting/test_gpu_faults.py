"""Faults of GPUs as their exporter shows them: they begin, and they end."""

from hypothesis import given
from hypothesis import strategies as st

from simulator.actors.exporting.counters import Choice
from simulator.faults import FAULTS, IN_A_GPU, Board
from simulator.faults.board import build, parse
from simulator.faults.ecc_errors import EccErrors
from simulator.faults.fallen_gpu import FallenGpu
from simulator.faults.full_memory import FullMemory
from simulator.faults.gpu_health import GpuHealth
from simulator.faults.gpu_resets import GpuResets
from simulator.faults.hot_gpu import HotGpu
from simulator.faults.idle_holder import IdleHolder
from simulator.faults.nvlink_errors import NvlinkErrors
from simulator.faults.pcie_replays import PcieReplays
from simulator.faults.power_limit import PowerLimit
from simulator.faults.row_remap import RowRemap
from simulator.faults.slow_nvlink import SlowNvlink
from simulator.faults.throttled_gpu import ThrottledGpu
from simulator.faults.xid import Xid
from tests.simulator.actors.exporting.scraping import NODE, samples, text, values
from tests.simulator.actors.stage import NEW, a_fleet

THIRD = 2


def a_talkative_fleet(*faults):
    """Everything that exporters can count is switched on."""
    stage = a_fleet(2, counters=Choice.ALL)
    text(stage)
    for fault in faults:
        stage.faults.put(fault)
    return stage


def test_a_hot_gpu_warms_up_is_slowed_down_and_cools_again():
    stage = a_talkative_fleet(HotGpu(NODE, THIRD, celsius=95))
    usual = values(stage, "DCGM_FI_DEV_GPU_TEMP")[THIRD]

    stage.run(20)
    text(stage)
    stage.run(1)
    soon = values(stage, "DCGM_FI_DEV_GPU_TEMP")[THIRD]
    stage.run(400)
    late, clocks = values(stage, "DCGM_FI_DEV_GPU_TEMP"), values(stage, "DCGM_FI_DEV_SM_CLOCK")
    held_down = values(stage, "DCGM_FI_DEV_THERMAL_VIOLATION")
    stage.faults.clear("hot_gpu")
    stage.run(400)

    assert usual < soon < 95
    assert round(late[THIRD]) in (94, 95)
    assert max(late[:THIRD] + late[THIRD + 1 :]) < 80
    assert clocks[THIRD] < clocks[0]
    assert held_down[THIRD] > 400e9
    assert sum(held_down) == held_down[THIRD]
    assert values(stage, "DCGM_FI_DEV_GPU_TEMP")[THIRD] < 80
    assert values(stage, "DCGM_FI_DEV_SM_CLOCK")[THIRD] == clocks[0]
    assert values(stage, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS")[THIRD] in (0, 4)


def test_reasons_are_told_as_bits_and_as_counts():
    stage = a_talkative_fleet(ThrottledGpu(NODE, THIRD, reason="hw_power_brake"))

    stage.run(90)
    text(stage)
    stage.run(90)
    written = text(stage)

    counted = {
        (labels["gpu"], labels.get("clock_event")): value
        for labels, value in samples(written, "DCGM_EXP_CLOCK_EVENTS_COUNT")
    }
    assert values(stage, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS")[THIRD] == 0x80
    assert counted["2", "hw_power_brake"] >= 2
    assert values(stage, "DCGM_FI_DEV_POWER_VIOLATION")[THIRD] > 90e9


def test_another_power_limit_is_what_it_draws_and_slows_it_down():
    stage = a_talkative_fleet(PowerLimit(NODE, THIRD, watts=150))

    limits, drawn = values(stage, "DCGM_FI_DEV_POWER_MGMT_LIMIT"), values(stage, "DCGM_FI_DEV_POWER_USAGE")
    clocks, reasons = values(stage, "DCGM_FI_DEV_SM_CLOCK"), values(stage, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS")
    stage.faults.clear("power_limit")

    assert limits == [700, 700, 150, 700, 700, 700, 700, 700]
    assert drawn[THIRD] == 150 < min(drawn[:THIRD])
    assert clocks[THIRD] < min(clocks[:THIRD])
    assert reasons[THIRD] == 4
    assert values(stage, "DCGM_FI_DEV_POWER_USAGE")[THIRD] > 150


def test_a_program_that_gives_no_memory_back_uses_nearly_all_of_it():
    stage = a_talkative_fleet(FullMemory(NODE, THIRD, used_ratio=0.99))

    used, free = values(stage, "DCGM_FI_DEV_FB_USED"), values(stage, "DCGM_FI_DEV_FB_FREE")

    assert round(used[THIRD] / (used[THIRD] + free[THIRD]), 2) == 0.99
    assert max(used[:THIRD]) < used[THIRD]


def test_corrected_errors_grow_and_uncorrected_ones_come_at_once():
    stage = a_talkative_fleet(EccErrors(NODE, THIRD, corrected_per_hour=720, uncorrected=3))

    stage.run(600)

    assert values(stage, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL")[THIRD] in (119, 120)
    assert values(stage, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL") == [0, 0, 3, 0, 0, 0, 0, 0]
    assert values(stage, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL")[THIRD] == 3
    stage.faults.clear()
    stage.run(600)
    assert values(stage, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL")[THIRD] in (119, 120)


def test_a_loaded_driver_forgets_what_is_volatile_and_the_board_keeps_the_rest():
    stage = a_talkative_fleet(EccErrors(NODE, THIRD, uncorrected=3), RowRemap(NODE, THIRD), Xid(NODE, 3, code=48))
    stage.run(30)
    before = text(stage)

    stage.play.kubelets.hosts[NODE].unload()
    stage.play.kubelets.hosts[NODE].load(NEW, "")
    stage.run(30)
    after = text(stage)

    of_third = {
        series: (samples(before, series)[THIRD][1], samples(after, series)[THIRD][1])
        for series in (
            "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
            "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
            "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
            "DCGM_FI_DEV_ROW_REMAP_PENDING",
        )
    }
    assert of_third == {
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": (3, 0),
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": (3, 3),
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": (1, 1),
        "DCGM_FI_DEV_ROW_REMAP_PENDING": (1, 0),
    }
    assert samples(before, "DCGM_FI_DEV_XID_ERRORS")[3][1] == 48
    assert samples(after, "DCGM_FI_DEV_XID_ERRORS")[3][1] == 0


def test_a_failed_remap_is_told_as_long_as_it_lasts():
    stage = a_fleet(2)
    stage.faults.put(RowRemap(NODE, THIRD, state="failed"))

    failed, last = values(stage, "DCGM_FI_DEV_ROW_REMAP_FAILURE"), values(stage, "DCGM_FI_DEV_XID_ERRORS")
    stage.faults.clear("row_remap")

    assert failed == [0, 0, 1, 0, 0, 0, 0, 0]
    assert last[THIRD] == 64
    assert sum(values(stage, "DCGM_FI_DEV_ROW_REMAP_FAILURE")) == 0


def test_the_gauge_keeps_the_last_xid_and_hides_that_it_came_again():
    stage = a_talkative_fleet(Xid(NODE, THIRD, code=13, times=40, every_s=5))

    stage.run(100)
    gauge, (counted, *_) = text(stage), samples(text(stage), "DCGM_EXP_XID_ERRORS_COUNT")[2:]
    stage.run(700)
    later = text(stage)
    stage.faults.put(Xid(NODE, THIRD, code=31))
    stage.faults.clear()

    ((labels, value),) = samples(gauge, "DCGM_FI_DEV_XID_ERRORS")[THIRD : THIRD + 1]
    assert (value, labels["err_code"], labels["err_msg"]) == (13, "13", "Graphics Engine Exception")
    assert (counted[0]["xid"], counted[1]) == ("13", 21)
    assert samples(later, "DCGM_FI_DEV_XID_ERRORS")[THIRD][1] == 13
    assert "xid" not in samples(later, "DCGM_EXP_XID_ERRORS_COUNT")[THIRD][0]
    assert values(stage, "DCGM_FI_DEV_XID_ERRORS")[THIRD] == 31


def test_an_exporter_that_starts_anew_forgets_the_xid():
    stage = a_fleet(2)
    stage.faults.put(Xid(NODE, THIRD, code=48))
    before = values(stage, "DCGM_FI_DEV_XID_ERRORS")[THIRD]

    again = values(stage, "DCGM_FI_DEV_XID_ERRORS", DCGM_EXPORTER_LISTEN=":9400")[THIRD]

    assert (before, again) == (48, 0)


def test_a_gpu_that_falls_off_says_79_then_nothing_and_is_allocatable_no_more():
    stage = a_fleet(2)
    stage.faults.put(FallenGpu(NODE, THIRD, after_s=60))

    stage.run(10)
    last, offered = values(stage, "DCGM_FI_DEV_XID_ERRORS"), stage.node(NODE)["status"]
    stage.run(60)
    left = {labels["gpu"] for labels, _ in samples(text(stage), "DCGM_FI_DEV_GPU_TEMP")}
    stage.faults.clear()
    stage.run(10)

    assert last[THIRD] == 79
    assert (offered["capacity"]["nvidia.com/gpu"], offered["allocatable"]["nvidia.com/gpu"]) == ("8", "7")
    assert left == {"0", "1", "3", "4", "5", "6", "7"}
    assert len(values(stage, "DCGM_FI_DEV_GPU_TEMP")) == 8
    assert stage.node(NODE)["status"]["allocatable"]["nvidia.com/gpu"] == "8"


def test_a_gpu_that_the_plugin_withdraws_is_exported_all_the_same():
    stage = a_fleet(2)

    stage.faults.put(Xid(NODE, THIRD, code=95, is_withdrawn=True))
    stage.run(5)
    offered = stage.node(NODE)["status"]["allocatable"]["nvidia.com/gpu"]
    stage.faults.clear("xid")
    stage.run(5)

    assert (offered, len(values(stage, "DCGM_FI_DEV_GPU_TEMP"))) == ("7", 8)
    assert stage.node(NODE)["status"]["allocatable"]["nvidia.com/gpu"] == "8"


def test_links_that_fail_and_links_that_are_slow():
    stage = a_talkative_fleet(
        PcieReplays(NODE, 1, per_minute=30), NvlinkErrors(NODE, THIRD, per_minute=60), SlowNvlink(NODE, 3, ratio=0.1)
    )

    before = values(stage, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER")
    stage.run(120)
    after = values(stage, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER")
    moved = values(stage, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL")

    assert [b - a for a, b in zip(before, after, strict=True)] == [0, 60, 0, 0, 0, 0, 0, 0]
    assert values(stage, "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL")[THIRD] == 120
    assert values(stage, "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL")[THIRD] == 0
    assert abs(moved[3] / moved[4] - 0.1) < 0.01


def test_a_reset_begins_what_is_volatile_anew():
    stage = a_fleet(2)
    stage.run(60)
    before = values(stage, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")

    stage.faults.put(GpuResets(NODE, THIRD, every_s=600))
    first = values(stage, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
    stage.run(590)
    grown = values(stage, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
    stage.run(20)
    second = values(stage, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")

    assert first[THIRD] < before[THIRD]
    assert first[0] >= before[0]
    assert second[THIRD] < grown[THIRD]
    assert second[0] > grown[0]


def test_health_watches_and_idle_holders():
    stage = a_talkative_fleet(
        GpuHealth(NODE, THIRD, watch="SM", result="warn", code="DCGM_FR_UNKNOWN"), IdleHolder(NODE)
    )

    stage.run(200)
    told = samples(text(stage), "DCGM_EXP_GPU_HEALTH_STATUS")
    (sick,) = [(labels, value) for labels, value in told if value]

    assert (sick[0]["gpu"], sick[0]["health_watch"], sick[0]["health_error_code"]) == ("2", "SM", "DCGM_FR_UNKNOWN")
    assert sick[1] == 10
    assert values(stage, "DCGM_FI_DEV_GPU_UTIL") == [0] * 8
    assert min(values(stage, "DCGM_FI_DEV_FB_USED")) > 50_000
    stage.faults.clear("idle_holder")
    assert min(values(stage, "DCGM_FI_DEV_GPU_UTIL")) > 10


def test_one_fault_of_many_is_ended_by_what_it_is():
    board = Board(HotGpu(NODE, 1), HotGpu(NODE, 2), Xid(NODE, 2))

    ended = board.end("hot_gpu", {"node": NODE, "gpu": "2"})

    assert ended == 1
    assert board.listing() == (HotGpu(NODE, 1), Xid(NODE, 2))
    assert board.end("hot_gpu", {"node": "elsewhere"}) == 0


def test_every_fault_of_a_gpu_is_put_by_one_word():
    for kind in IN_A_GPU:
        more = ",corrected_per_hour=1" if kind is EccErrors else ""
        fault = parse(FAULTS, f"{kind.key}:node=n,gpu=3{more}")

        assert (fault.node, fault.gpu) == ("n", 3)
        assert build(FAULTS, kind.key, {"node": "n", "gpu": "all", **({"uncorrected": 1} if more else {})}).has(7)


@given(st.integers(1, 50), st.just(0.0) | st.floats(0.001, 20), st.lists(st.floats(0, 40), max_size=12))
def test_however_often_one_looks_an_xid_is_reported_as_often_as_it_came(times, every_s, steps):
    fault, seen, at_s = Xid(NODE, code=31, times=times, every_s=every_s), [], -1.0

    for step in [*steps, 2000.0]:
        until_s = max(at_s, 0.0) + step
        seen += fault.xids(at_s, until_s)
        at_s = until_s

    assert len(seen) == times
    assert seen == sorted(seen)
