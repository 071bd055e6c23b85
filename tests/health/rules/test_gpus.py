import math
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gpu.xids import WORKFLOWS, XIDS, XidAction, XidPattern, verdict_of, workflow_of
from health.inbox.rulebook import every_rule
from health.rules.base import Severity
from health.rules.gpus import GPU_RULES
from health.rules.gpus.base import GpuFacts, XidSeen, is_any_metric_exported
from health.rules.gpus.called_unhealthy import CalledUnhealthy
from health.rules.gpus.ecc_corrected import EccCorrected
from health.rules.gpus.ecc_uncorrected import EccUncorrected
from health.rules.gpus.fabric import Fabric
from health.rules.gpus.hot import Hot
from health.rules.gpus.memory_nearly_full import MemoryNearlyFull
from health.rules.gpus.nvlink_errors import NvlinkErrors
from health.rules.gpus.nvlink_quiet import NvlinkQuiet
from health.rules.gpus.pcie_replays import PcieReplays
from health.rules.gpus.power_near_limit import PowerNearLimit
from health.rules.gpus.recovery_action import RecoveryActionNeeded
from health.rules.gpus.resets import Resets
from health.rules.gpus.row_remap import RowRemap
from health.rules.gpus.silent import GpuSilent
from health.rules.gpus.throttled import Throttled
from health.rules.gpus.xid import LastXid
from health.rules.limits import A_POOL, Limits
from health.telemetry.metrics import METRICS
from health.telemetry.snapshot import Checkpoint, GpuDevice, MetricColumn, TelemetrySnapshot
from health.telemetry.snapshot_memory import Growth
from tests.make import NOON
from tests.reports import causes, steps, told
from wording.instants import to_the_second

AT = NOON.timestamp()
WELL = GpuFacts(
    "gpu-1",
    "GPU 3 of gpu-1",
    now={"temperature_celsius": 61.0, "xid": 0.0, "memory_used_mib": 100.0, "memory_free_mib": 900.0},
    evaluated_at=NOON,
)
BOARDS = [GpuDevice("gpu-1", index, f"GPU-{index}") for index in range(4)]


def a_frame(metric: str, *values: float, grew_from: tuple[float, ...] = (), age_s: float = 5.0) -> TelemetrySnapshot:
    snapshot = TelemetrySnapshot(AT, BOARDS)
    column = snapshot.columns[metric] = MetricColumn.empty(len(BOARDS))
    for place, value in enumerate(values):
        column.values[place], column.times[place] = value, AT - age_s
    if grew_from:
        then = MetricColumn.empty(len(BOARDS)).values
        for place, value in enumerate(grew_from):
            then[place] = value
        snapshot.checkpoints = (Checkpoint(AT - 3000, {metric: then}),)
    return snapshot


def grown(**amounts: float) -> GpuFacts:
    return replace(WELL, grown={key: Growth(amount, AT - 3000) for key, amount in amounts.items()})


def with_xid(number: int, *, ago=timedelta(minutes=1), words: str = "", **given) -> GpuFacts:
    return replace(WELL, xid=XidSeen(number, NOON - ago if ago is not None else None, words), **given)


def test_rules_with_a_common_base_have_texts_of_their_own():
    says = {entry.key: entry.says for entry in every_rule()}

    assert says["gpu-power-near-limit"].startswith("Power near its limit.")
    assert says["gpu-pcie-replays"].startswith("A GPU's PCIe link retransmits")


def test_every_file_is_in_the_table():
    files = {path.stem for path in (Path("health/rules/gpus")).glob("*.py")} - {
        "__init__",
        "base",
        "counters",
        "shares",
    }

    assert {type(rule).__module__.rpartition(".")[2] for rule in GPU_RULES} == files
    assert len({rule.key for rule in GPU_RULES}) == len(GPU_RULES)


def test_every_metric_that_a_rule_reads_is_in_the_table():
    assert {key for rule in GPU_RULES for key in rule.metrics} <= set(METRICS)


def test_a_gpu_that_is_well_is_well_by_every_rule():
    assert [rule.evaluate(WELL) for rule in GPU_RULES] == [None] * len(GPU_RULES)


@pytest.mark.parametrize("rule", GPU_RULES, ids=lambda rule: rule.key)
def test_nobody_is_blamed_where_nothing_is_known(rule):
    """No answer is never a finding: but for being silent itself."""
    assert list(rule.suspects(TelemetrySnapshot(AT, BOARDS))) == []
    if rule.key != "gpu-silent":
        assert rule.evaluate(GpuFacts("gpu-1", "GPU 3 of gpu-1")) is None


@pytest.mark.parametrize(
    ("celsius", "severity"),
    [(82.9, None), (83, Severity.WARNING), (84.9, Severity.WARNING), (85, Severity.CRITICAL)],
)
def test_is_hot_from_83_and_critical_from_85(celsius, severity):
    wrong = Hot().evaluate(replace(WELL, now={"temperature_celsius": celsius}))

    assert (wrong.severity if wrong else None) == severity
    assert list(Hot().suspects(a_frame("temperature_celsius", celsius))) == ([0] if severity else [])


def test_one_error_that_ecc_could_not_correct_is_critical():
    assert EccUncorrected().evaluate(replace(WELL, now={"ecc_uncorrected": 1})).severity == Severity.CRITICAL
    assert EccUncorrected().evaluate(replace(WELL, now={"ecc_uncorrected": 0})) is None


def test_where_errors_are_not_counted_a_row_that_was_remapped_for_one_tells_of_it():
    wrong = EccUncorrected().evaluate(grown(rows_remapped_uncorrected=1))

    assert wrong.severity == Severity.WARNING
    assert wrong.summary == "ECC could not correct them within the last hour. Rows were remapped for them."
    assert wrong.facts == {"rows_remapped_uncorrected": 1}
    since = {"rows_remapped_uncorrected": Growth(1, AT - 5 * 3600, hours=5.0)}
    wrong = EccUncorrected().evaluate(replace(WELL, grown=since))
    assert f"Since: {to_the_second(NOON - timedelta(hours=5))}" in told(wrong)
    assert EccUncorrected().evaluate(grown(rows_remapped_uncorrected=0)) is None
    assert list(EccUncorrected().suspects(a_frame("rows_remapped_uncorrected", 3, 3, grew_from=(2, 3)))) == [0]


def test_where_errors_are_counted_rows_that_were_remapped_before_are_none():
    counted = replace(grown(rows_remapped_uncorrected=1), now={"ecc_uncorrected": 0})

    assert EccUncorrected().evaluate(counted) is None
    assert EccUncorrected().evaluate(replace(counted, now={"ecc_uncorrected": 2})).facts == {"ecc_uncorrected": 2}


@pytest.mark.parametrize(("said", "is_wrong"), [(0, True), (1, False), (None, False)])
def test_a_gpu_is_unhealthy_where_its_exporter_says_so_and_not_where_it_says_nothing(said, is_wrong):
    wrong = CalledUnhealthy().evaluate(replace(WELL, now={} if said is None else {"called_healthy": said}))

    assert (wrong is not None and wrong.severity == Severity.CRITICAL) is is_wrong
    assert list(CalledUnhealthy().suspects(a_frame("called_healthy", math.nan if said is None else said))) == (
        [0] if is_wrong else []
    )


def test_many_corrected_errors_are_a_warning():
    assert EccCorrected().evaluate(grown(ecc_corrected=100)).severity == Severity.WARNING
    assert EccCorrected().evaluate(grown(ecc_corrected=99)) is None
    assert list(EccCorrected().suspects(a_frame("ecc_corrected", 1000, 1099, grew_from=(900, 1000)))) == [0]


def test_a_remap_that_failed_is_worse_than_one_that_waits():
    waits, failed = replace(WELL, now={"row_remap_pending": 1}), replace(WELL, now={"row_remap_failed": 1})

    assert RowRemap().evaluate(waits).severity == Severity.WARNING
    assert RowRemap().evaluate(failed).severity == Severity.CRITICAL


def test_a_gpu_began_anew_by_itself_where_its_node_did_not():
    later = (5, 7e6, 7e6, 7e6)

    assert list(Resets().suspects(a_frame("energy_joules", *later, grew_from=(0, 6e6, 6e6, 6e6)))) == [0]
    assert list(Resets().suspects(a_frame("energy_joules", 5, 5, 5, 5, grew_from=(0, 0, 0, 0)))) == []
    assert list(Resets().suspects(a_frame("energy_joules", 0, 7e6, 7e6, 7e6, grew_from=(0, 6e6, 6e6, 6e6)))) == []


def test_a_board_that_is_silent_does_not_go_on_beside_one_that_began_anew():
    snapshot = a_frame("energy_joules", 5, 5, 5, 9e6, grew_from=(0, 0, 0, 6e6))
    assert list(Resets().suspects(snapshot)) == [0, 1, 2]

    snapshot.columns["energy_joules"].times[3] = AT - 3600

    assert list(Resets().suspects(snapshot)) == []


def test_one_reset_and_a_second_are_nobodys_fault():
    assert Resets().evaluate(replace(WELL, resets=2)) is None
    assert Resets().evaluate(replace(WELL, resets=3)).severity == Severity.WARNING
    assert (
        Resets().evaluate(replace(WELL, resets=3)).fingerprint == Resets().evaluate(replace(WELL, resets=9)).fingerprint
    )


def test_pcie_replays_count_by_the_hour():
    assert PcieReplays().evaluate(grown(pcie_replays=100)) is not None
    assert PcieReplays().evaluate(grown(pcie_replays=99)) is None


def test_an_nvlink_that_recovered_is_critical_and_errors_a_warning():
    assert NvlinkErrors().evaluate(grown(nvlink_recoveries=1)).severity == Severity.CRITICAL
    assert NvlinkErrors().evaluate(grown(nvlink_replays=100)).severity == Severity.WARNING
    assert NvlinkErrors().evaluate(grown(nvlink_replays=99)) is None


@pytest.mark.parametrize(
    ("sent", "severity"),
    [(500.0, None), (499.0, Severity.WARNING), (101.0, Severity.WARNING), (99.0, Severity.CRITICAL)],
)
def test_how_far_below_its_peers_is_told_may_be_a_pools_word(sent, severity):
    now = {"nvlink_mib_per_s": sent, "engine_active_ratio": 0.9}
    quiet = replace(WELL, now=now, peers={"nvlink_mib_per_s": 1000.0}, is_of_one_job=True)
    rule = NvlinkQuiet(Limits(50, 90, timedelta(minutes=2), timedelta(minutes=1), whose=A_POOL))

    wrong = rule.evaluate(quiet)

    assert (wrong.severity if wrong else None) == severity
    if severity == Severity.WARNING:
        assert wrong.facts["nvlink_mib_per_s"] == sent
        assert "Limit for a warning: 50 % less than its node’s other GPUs" in told(wrong)
        assert told(wrong).endswith("Limits set by: a pool")


def test_a_gpu_that_works_and_hardly_sends_is_far_below_its_peers():
    now = {"nvlink_mib_per_s": 10.0, "engine_active_ratio": 0.9}
    quiet = replace(WELL, now=now, peers={"nvlink_mib_per_s": 1000.0}, is_of_one_job=True)

    assert NvlinkQuiet().evaluate(quiet) is not None
    assert NvlinkQuiet().evaluate(replace(quiet, now=now | {"engine_active_ratio": 0.01})) is None


@pytest.mark.parametrize("is_busy", [True, False])
@pytest.mark.parametrize("metric", ["engine_active_ratio", "gpu_utilisation_ratio"])
def test_only_who_works_can_be_below_its_peers(metric, is_busy):
    """Where jobs leave GPUs idle, those were all looked up: one in ten of a fleet."""
    snapshot = a_frame("nvlink_mib_per_s", 9, 99, 99, 99)
    snapshot.columns |= a_frame(metric, 0.9 if is_busy else 0.04, 0.9, 0.9, 0.9).columns

    assert list(NvlinkQuiet().suspects(snapshot)) == [0] * is_busy


def test_gpus_of_several_pods_are_no_peers():
    now = {"nvlink_mib_per_s": 0.0, "engine_active_ratio": 0.9}

    assert NvlinkQuiet().evaluate(replace(WELL, now=now, peers={"nvlink_mib_per_s": 1000.0})) is None


def test_being_at_the_limit_of_its_power_is_no_fault():
    """Z28."""
    assert Throttled().evaluate(grown(throttled_power=1e9)) is None
    assert "too hot" in causes(Throttled().evaluate(grown(throttled_thermal=1e9)))


def test_full_memory_is_usual_for_inference_and_training():
    """Z28."""
    full = replace(WELL, now={"memory_used_mib": 990.0, "memory_free_mib": 10.0})

    assert MemoryNearlyFull().evaluate(replace(full, workload_classes=frozenset({"inference"}))) is None
    assert MemoryNearlyFull().evaluate(full) is None
    assert (
        MemoryNearlyFull().evaluate(replace(full, workload_classes=frozenset({"development"}))).severity
        == Severity.NOTE
    )


@pytest.mark.parametrize(
    ("watts", "limit", "classes", "severity"),
    [
        (679, 700, {"development"}, Severity.NOTE),
        (720, 700, {"inference", "mixed"}, Severity.NOTE),
        (678, 700, {"development"}, None),
        (700, 700, {"training"}, None),
        (700, 700, {"training", "development"}, None),
        (700, 700, set(), None),
        (700, 0, {"development"}, None),
    ],
)
def test_power_near_its_limit_is_a_note_where_no_training_runs(watts, limit, classes, severity):
    """Z28."""
    near = replace(WELL, now={"power_watts": watts, "power_limit_watts": limit}, workload_classes=frozenset(classes))

    wrong = PowerNearLimit().evaluate(near)

    assert (wrong.severity if wrong else None) == severity


def test_power_is_near_its_limit_only_where_both_are_said():
    snapshot = a_frame("power_watts", 700, 700, 100, 700)
    assert list(PowerNearLimit().suspects(snapshot)) == []

    snapshot.columns |= a_frame("power_limit_watts", 700, 1000, 700, 0).columns

    assert list(PowerNearLimit().suspects(snapshot)) == [0]


@pytest.mark.parametrize(
    ("rule", "part", "whole"),
    [
        (PowerNearLimit(), "power_watts", "power_limit_watts"),
        (MemoryNearlyFull(), "memory_used_mib", "memory_free_mib"),
    ],
    ids=lambda value: getattr(value, "key", value),
)
def test_a_share_is_seen_where_both_its_parts_are_exported(rule, part, whole):
    assert is_any_metric_exported(rule, {part, whole})
    assert not is_any_metric_exported(rule, {part})
    assert not is_any_metric_exported(rule, {whole})


def test_a_gpu_that_went_silent_alone_is_lost():
    snapshot = a_frame("temperature_celsius", 60, 60, 60, 60)
    snapshot.columns["temperature_celsius"].times[2] = AT - 200

    assert list(GpuSilent().suspects(snapshot)) == [2]
    assert "Last Xid: 79" in told(GpuSilent().evaluate(with_xid(79, now={})))


@pytest.mark.parametrize(
    ("vendor", "celsius", "severity"),
    [
        ("amd", 94.9, None), ("amd", 95, Severity.WARNING), ("amd", 100, Severity.CRITICAL),
        ("nvidia", 83, Severity.WARNING), ("nvidia", 85, Severity.CRITICAL), ("habana", 85, Severity.CRITICAL),
        ("", 85, Severity.CRITICAL),
    ],
)  # fmt: skip
def test_a_gpu_is_too_hot_by_what_its_vendors_slow_down_at(vendor, celsius, severity):
    """AMD's tell of the hottest spot of the die, and slow down at 100 °C there."""
    hot = Hot().evaluate(replace(WELL, vendor=vendor, now={"temperature_celsius": celsius}))

    assert (hot.severity if hot else None) == severity


def test_a_pools_own_limits_hold_whosever_its_gpus_are():
    rule = Hot(Limits(70, None, timedelta(minutes=1), whose=A_POOL))

    hot = rule.evaluate(replace(WELL, vendor="amd", now={"temperature_celsius": 71}))

    assert hot.summary.startswith("It has 70 °C or more.")
    assert told(hot).endswith("Limits set by: a pool")


@pytest.mark.parametrize(("vendor", "tool"), [("", "nvidia-smi"), ("amd", "amd-smi"), ("habana", "hl-smi")])
def test_a_gpu_is_looked_for_by_the_program_of_its_vendor(vendor, tool):
    assert f"lspci and {tool} on" in steps(GpuSilent().evaluate(replace(WELL, now={}, vendor=vendor)))


def test_a_node_that_is_silent_as_a_whole_has_no_lost_gpu():
    assert list(GpuSilent().suspects(a_frame("temperature_celsius", 60, 60, 60, 60, age_s=200))) == []


@pytest.mark.parametrize(
    ("number", "severity"),
    [
        (79, Severity.CRITICAL), (48, Severity.CRITICAL), (64, Severity.CRITICAL), (95, Severity.CRITICAL),
        (119, Severity.CRITICAL), (143, Severity.CRITICAL), (74, Severity.WARNING), (63, Severity.WARNING),
        (94, Severity.NOTE), (31, Severity.NOTE), (13, Severity.NOTE), (45, None), (43, None), (92, Severity.WARNING),
        (54, Severity.CRITICAL), (9999, Severity.WARNING),
    ],
)  # fmt: skip
def test_judges_an_xid_by_nvidias_catalogue(number, severity):
    wrong = LastXid().evaluate(with_xid(number))

    assert (wrong.severity if wrong else None) == severity


def test_what_other_vendors_do_is_shown_beside_nvidias_action():
    """lifecycle R77."""
    found = LastXid().evaluate(with_xid(31))
    shown = {item.label: item.value for item in found.evidence}
    assert (shown["NVIDIA's action"], shown["Other vendors"].split(" (")[0]) == (
        "restart-app", "EKS reboots the node after 10 min",
    )  # fmt: skip


def test_an_xid_that_no_catalogue_has_says_so():
    assert "has no action for this Xid" in steps(LastXid().evaluate(with_xid(9999)))


FROM = "GPU recovery action changed from"


@pytest.mark.parametrize(
    ("words", "action"),
    [
        (f"{FROM} 0x0 (None) to 0x1 (GPU Reset Required)", XidAction.RESET_GPU),
        (f"{FROM} 0x0 (None) to 0x2 (Node Reboot Required)", XidAction.RESTART_NODE),
        (f"{FROM} 0x0 (None) to 0x2 (OS Reboot)", XidAction.RESTART_NODE),
        (f"{FROM} 0x0 (None) to 0x1 (PF FLR)", XidAction.RESET_GPU),
        (f"{FROM} 0x0 (None) to 0x4 (Drain and Reset)", XidAction.DRAIN_AND_RESET),
        (f"{FROM} 0x0 (None) to 0x1 (Drain and Reset)", XidAction.DRAIN_AND_RESET),  # of text and number the text
        (f"{FROM} 0x0 (None) to 0x4 (Drain P2P and Reset)", XidAction.DRAIN_AND_RESET),
        (f"{FROM} 0x0 (None) to 0x3 (Drain P2P)", XidAction.DRAIN_P2P),
        (f"{FROM} 0x0 (None) to 0x5 (Recover IMEX Domain)", XidAction.RECOVER_IMEX),
        (f"{FROM} 0x0 (None) to 0x6 (Bus Reset)", XidAction.RESET_GPU),
        (f"{FROM} 0x0 (None) to 0x7 (System Reboot)", XidAction.RESTART_NODE),
        (f"{FROM} 0x1 (Drain and Reset) to 0x0 (None)", XidAction.IGNORE),
        (f"{FROM} 0x1 (PF FLR) to 0x2 (OS Reboot)", XidAction.RESTART_NODE),
        (f"{FROM} 0x0 to 0x2", XidAction.RESTART_NODE),
        (f"NVRM: Xid (PCI:0000:01:00): 154, {FROM} 0x0 (None) to 0x2 (OS Reboot)", XidAction.RESTART_NODE),
        ("changed to 0x2 (Node Reboot Required)", XidAction.RESTART_NODE),
        ("Drain P2P", XidAction.DRAIN_P2P),
        (f"{FROM} 0x0 (None) to 0x9 (Replace Board)", None),
        (f"{FROM} 0x0 (None) to 0x9", None),
        (f"{FROM} 0x0 (None) to", None),
        (f"{FROM} 0x0 (None) to 0x2 (No Reboot Needed)", None),
        ("something new", None),
        ("", None),
    ],
)
def test_the_text_of_154_is_the_verdict(words, action):
    assert verdict_of(words).action == action


def test_a_154_whose_text_nobody_knows_is_a_finding_with_its_text():
    wrong = LastXid().evaluate(with_xid(154, words=f"{FROM} 0x0 (None) to 0x9 (Replace Board)"))

    assert wrong.severity == Severity.WARNING
    assert wrong.title == "GPU 3 of gpu-1: Xid 154 (unknown recovery action)"
    assert "(Replace Board)" in told(wrong)
    assert "Replace Board" in steps(wrong)


def test_a_154_names_its_recovery_action():
    wrong = LastXid().evaluate(with_xid(154, words=f"{FROM} 0x0 (None) to 0x2 (OS Reboot)"))

    assert wrong.severity == Severity.CRITICAL
    assert wrong.title == "GPU 3 of gpu-1: Xid 154 (GPU recovery action: OS Reboot)"
    assert "Reboot the node: ask for it in its case." in wrong.steps


def test_a_154_without_its_text_says_where_the_text_is():
    wrong = LastXid().evaluate(with_xid(154))

    assert wrong.title == "GPU 3 of gpu-1: Xid 154 (unknown recovery action)"
    assert wrong.steps[0] == "Its exporter reports no text."
    assert "kernel log" in steps(wrong)


@pytest.mark.parametrize(
    ("sampled_after", "is_told"), [(timedelta(minutes=-1), False), (timedelta(minutes=1), True), (None, True)]
)
def test_an_xid_ends_with_a_boot_after_the_last_sample_of_its_gauge(sampled_after: timedelta | None, is_told: bool):
    """A boot loads the driver anew: a gauge with the Xid after it shows a new one. Unknown is never over."""
    boot = NOON - timedelta(minutes=5)
    sampled_at = boot + sampled_after if sampled_after is not None else None
    seen = XidSeen(79, NOON - timedelta(minutes=20), sampled_at=sampled_at)
    past = (XidSeen(79, seen.since),)

    told = LastXid().evaluate(replace(WELL, now={}, xid=seen, past_xids=past, booted_at=boot))
    assert (told is not None) == is_told
    assert LastXid().evaluate(replace(WELL, now={}, xid=seen, past_xids=past)) is not None


@pytest.mark.parametrize("counted", [79, 48])
def test_an_xid_counted_after_a_boot_is_told_beside_the_gauge_of_before(counted: int):
    boot = NOON - timedelta(minutes=5)
    seen = XidSeen(79, NOON - timedelta(minutes=20), sampled_at=boot - timedelta(minutes=1))
    gpu = replace(WELL, xid=seen, booted_at=boot, parts={"xids_counted": {str(counted): 1.0}})

    wrong = LastXid().evaluate(gpu)

    assert wrong.facts["xid"] == counted
    assert "others" not in wrong.facts


HIDDEN = "It may hide an earlier Xid"


def test_an_earlier_xid_may_be_hidden_behind_a_154_that_the_gauge_alone_shows():
    assert HIDDEN in causes(LastXid().evaluate(with_xid(154, words="to 0x2 (OS Reboot)")))
    earlier = with_xid(154, words="to 0x2 (OS Reboot)", past_xids=(XidSeen(79, NOON),))
    assert HIDDEN not in causes(LastXid().evaluate(earlier))


def test_an_exporter_that_counts_hides_no_xid_behind_a_154():
    counted = with_xid(154, words="to 0x1 (PF FLR)", parts={"xids_counted": {"154": 1.0}})

    assert HIDDEN not in causes(LastXid().evaluate(replace(counted, now={"xids_counted": 1.0})))


@pytest.mark.parametrize(
    ("number", "severity", "says", "asks"),
    [
        (0, None, "", ""),
        (1, Severity.CRITICAL, "1 (GPU Reset)", "Reset the GPU"),
        (2, Severity.CRITICAL, "2 (Node Reboot)", "Reboot the node"),
        (3, Severity.WARNING, "3 (Drain P2P)", "NVLink or P2P"),
        (4, Severity.CRITICAL, "4 (Drain and Reset)", "Reset the GPU"),
        (5, Severity.WARNING, "5 (Recover IMEX Domain)", "IMEX domain"),
        (7, Severity.CRITICAL, "7 (System Reboot)", "Reboot the node"),
        (9, Severity.WARNING, "9", "nvidia-smi -q"),
    ],
)
def test_the_recovery_action_that_a_driver_asks_for_is_a_finding(number, severity, says, asks):
    wrong = RecoveryActionNeeded().evaluate(replace(WELL, now={"recovery_action": float(number)}))

    assert (wrong.severity if wrong else None) == severity
    if wrong:
        assert f"Recovery action: {says}" in told(wrong)
        assert asks in " ".join(wrong.steps or RecoveryActionNeeded.steps)
    assert list(RecoveryActionNeeded().suspects(a_frame("recovery_action", number))) == ([0] if number else [])


@pytest.mark.parametrize(
    ("status", "severity"),
    [
        (0, None), (1, None), (3, None), (6, None),
        (2, Severity.WARNING), (4, Severity.CRITICAL), (5, Severity.CRITICAL),
    ],
)  # fmt: skip
def test_a_fabric_manager_that_failed_is_critical_and_one_that_does_not_end_a_warning(status, severity):
    wrong = Fabric().evaluate(replace(WELL, now={"fabric_manager_status": float(status)}))

    assert (wrong.severity if wrong else None) == severity


@pytest.mark.parametrize(
    ("mask", "fault"),
    [
        (0x80, None),  # access timeout recovery: false
        (0x1AA, None),  # each is false, the configuration is correct
        (0x1, "degraded bandwidth"), (0x4, "route recovery"), (0x10, "unhealthy route"),
        (0x40, "access timeout recovery"), (0x200, "incorrect configuration"),
        (0x11, "degraded bandwidth, unhealthy route"),
    ],
)  # fmt: skip
def test_a_health_mask_of_the_fabric_is_read_by_its_fields(mask, fault):
    wrong = Fabric().evaluate(replace(WELL, now={"fabric_manager_status": 3.0, "fabric_health": float(mask)}))

    assert (wrong.severity if wrong else None) == (Severity.CRITICAL if fault else None)
    assert fault is None or fault in wrong.summary


def test_an_applications_error_passes_and_a_hardware_one_does_not():
    assert LastXid().evaluate(with_xid(31, ago=timedelta(hours=2))) is None
    assert LastXid().evaluate(with_xid(79, ago=timedelta(hours=200))) is not None


def test_a_contained_memory_error_blames_the_memory_and_stays_until_a_reset():
    """Its application is ended for what the memory did, and the row is remapped only by a reset."""
    wrong = LastXid().evaluate(with_xid(94, ago=timedelta(hours=2)))

    assert wrong.causes == ("An uncorrectable memory error was contained. It ended only the program that met it.",)
    assert "Suspect: hardware" in told(wrong)
    assert "Reset the GPU in its next idle hour" in steps(wrong)


def test_an_applications_error_blames_no_gpu():
    assert causes(LastXid().evaluate(with_xid(31))) == "An application failed. This is not a GPU fault."


@pytest.mark.parametrize("number", sorted(XIDS))
def test_what_an_xid_asks_for_is_said_once(number):
    said = LastXid().evaluate(with_xid(number, words="Drain and Reset"))

    assert said is None or len(set(said.steps)) == len(said.steps)


def test_an_applications_error_from_before_we_looked_is_no_news():
    assert LastXid().evaluate(with_xid(31, ago=None)) is None
    assert "Recorded before Quarterdeck first looked." in told(LastXid().evaluate(with_xid(79, ago=None)))


def test_more_than_three_79_in_thirty_days_are_the_hardware():
    assert "Have the hardware replaced" not in steps(LastXid().evaluate(with_xid(79, again={79: 3})))
    assert "Have the hardware replaced" in steps(LastXid().evaluate(with_xid(79, again={79: 4})))
    assert (
        LastXid().evaluate(with_xid(79, again={79: 4})).fingerprint
        != LastXid().evaluate(with_xid(79, again={79: 3})).fingerprint
    )


@pytest.mark.parametrize(
    ("number", "beside", "again", "elsewhere", "pattern"),
    [
        (48, {63: 0}, 1, 0, XidPattern.BESIDE),
        (48, {64: 10, 45: 0}, 1, 0, XidPattern.BESIDE),
        (48, {63: 11}, 1, 0, None),
        (48, {45: 0}, 1, 0, None),
        (63, {48: 0}, 1, 0, None),
        (31, {13: 0}, 1, 0, None),
        (31, {}, 2, 0, None),
        (31, {}, 2, 1, XidPattern.SPREAD),
        (31, {}, 3, 0, XidPattern.AGAIN),
        (13, {}, 3, 1, XidPattern.AGAIN),
        (13, {}, 3, 2, XidPattern.SPREAD),
        (31, {}, 1, 1, XidPattern.SPREAD),
        (79, {}, 3, 9, None),
        (79, {}, 4, 9, XidPattern.AGAIN),
        (69, {48: 0}, 9, 9, None),
    ],
)
def test_what_an_xid_asks_for_goes_by_what_else_there_was(number, beside, again, elsewhere, pattern):
    flow = workflow_of(number, {other: timedelta(minutes=each) for other, each in beside.items()}, again, elsewhere)

    assert (flow.pattern if flow else None) == pattern


def test_of_two_that_are_as_bad_the_one_that_goes_by_the_other_is_told():
    last = with_xid(64, past_xids=(XidSeen(48, NOON - timedelta(minutes=2)),))

    assert "Xid 64 came with it" in causes(LastXid().evaluate(last))


@pytest.mark.parametrize(
    ("came_at", "comes_with"),
    [
        (NOON - timedelta(minutes=3), True),
        (NOON - timedelta(days=21), False),
        (None, False),  # nobody saw when
    ],
)
def test_two_xids_that_came_weeks_apart_did_not_come_together(came_at, comes_with):
    gpu = with_xid(48, past_xids=(XidSeen(63, came_at),))

    wrong = LastXid().evaluate(gpu)

    assert ("Xid 63 came with it" in causes(wrong)) == comes_with
    assert (wrong.facts.get("workflow") == "beside") == comes_with
    assert wrong.facts["others"] == {"63": came_at.isoformat() if came_at else None}


@pytest.mark.parametrize("counted", [{"63": 1.0}, {"48": 1.0, "63": 1.0}, {"48": 2.0}])
def test_what_is_counted_came_within_the_window_of_its_exporter(counted):
    long_ago = NOON - timedelta(days=21)
    gpu = with_xid(48, ago=timedelta(days=21), parts={"xids_counted": counted}, past_xids=(XidSeen(63, long_ago),))

    probable_cause = causes(LastXid().evaluate(gpu))

    assert ("Xid 63 came with it" in probable_cause) == ({"48", "63"} <= counted.keys())


@pytest.mark.parametrize("row", WORKFLOWS, ids=lambda row: f"{row.numbers}-{row.pattern}")
def test_every_workflow_is_of_an_xid_that_is_known_and_names_its_source(row):
    assert set(row.numbers) <= set(XIDS)
    assert row.others <= set(XIDS)
    assert row.source == "Quarterdeck" or row.source.startswith("https://docs.nvidia.com/") or ":docs/" in row.source
    assert (row.pattern is XidPattern.BESIDE) == bool(row.others)
    assert row.within


@pytest.mark.parametrize("number", [119, 120, 143])
def test_after_a_change_the_driver_is_the_first_suspect(number):
    after = LastXid().evaluate(with_xid(number, driver_changed_at=NOON - timedelta(hours=2)))

    assert "Suspect the new driver" in causes(after)
    assert after.steps[0] == "Compare it with GPUs that still have the previous driver."
    assert "Suspect the new driver" not in causes(LastXid().evaluate(with_xid(number)))


def test_an_xid_of_before_the_change_is_not_the_new_drivers():
    before = with_xid(119, ago=timedelta(hours=3), driver_changed_at=NOON - timedelta(hours=2))

    assert "Suspect the new driver" not in causes(LastXid().evaluate(before))


def test_what_is_said_of_an_xid_is_at_least_once():
    """Z22: the gauge hides a second one of the same number."""
    assert "at least once" in told(LastXid().evaluate(with_xid(79)))


def test_the_catalogue_has_the_numbers_that_it_must():
    assert {13, 31, 45, 48, 63, 64, 74, 79, 92, 94, 95, 119, 120, 143, 154} <= set(XIDS)
    assert XIDS[79].action == XidAction.RESTART_NODE


def test_where_an_exporter_counts_as_it_does_by_default_others_see_what_bad_memory_leaves():
    """Z23: ECC and NVLink errors are off by default. Xids and rows that are remapped tell of the same, and later."""
    by_default = {*LastXid.metrics, *RowRemap.metrics, "temperature_celsius"}

    blind = {rule.key for rule in GPU_RULES if not is_any_metric_exported(rule, by_default)}

    assert {EccCorrected.key, EccUncorrected.key, NvlinkErrors.key} <= blind
    assert {LastXid.key, RowRemap.key}.isdisjoint(blind)
    assert {48, 63, 64, 94, 95, 74} <= set(XIDS)
