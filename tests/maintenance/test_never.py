"""The columns "never" of lifecycle sections 7 and 9, row by row (R75)."""

from datetime import timedelta

import pytest

from gpu.xids import ACTIONS, XIDS, Fault, XidAction, fault_of
from health.rules.gpus.pcie_replays import PcieReplays
from maintenance.fault_tests import covers, needed_tests
from maintenance.lifecycle import RepairKind
from maintenance.step_choice import REPAIRS, repair_kind
from maintenance.triggers import (
    EVER,
    NEVER_RULES,
    NEVER_XIDS,
    RULES,
    TRIGGERS,
    SameCauses,
    Sign,
    matches_in,
    recommended_operation,
    trigger_of,
)
from tests.make import NOON

EVERY_REPAIR = frozenset(RepairKind)
SECOND_SIGNS = ("allocatable-below-expected", "gpu-row-remap", "device-unhealthy", "node-flapping")
# Rows of section 9 by their signal: which Xids or rules no machine acts on, and no page offers an operation for.
NEVER_ACTED_ON = {
    "Xid 13, 31: cordon or reboot on one": (13, 31),
    "43: page": (43,),
    "45 alone: count as fault": (45,),
    "63: evict for it": (63,),
    "94: reboot at once": (94,),
    "corrected-ECC storm (92): drain": (92, "gpu-ecc-corrected"),
    "thermal: cordon by heat alone": ("gpu-hot", "gpu-throttled", "gpu-power-near-limit"),
    "PCIe replays: reset as a cure": ("gpu-pcie-replays",),
    "node NotReady: out-of-service": ("node-not-ready",),
    "exporter or DCGM silent: quarantine": ("exporter-silent", "telemetry-silent", "cluster-not-seen"),
    "section 7: 137": (137,),
    "section 7: memory, utilisation": ("gpu-memory-nearly-full", "idle-gpus"),
}


def a_sign(rule: str, xid: int | None = None, *, node: str = "gpu-1", **given) -> Sign:
    row = {"finding": 1, "node_uid": node, "node_name": node, "title": "x", "opened_at": NOON, "is_critical": True}
    return Sign(**{**row, "rule": rule, "xid": xid, **given})


def keys(*signs: Sign) -> list[str]:
    return [match.trigger.key for match in matches_in(signs, now=NOON + timedelta(minutes=5))]


@pytest.mark.parametrize("row", NEVER_ACTED_ON)
def test_no_machine_acts_on_it_however_often_it_comes_and_no_page_offers_it(row: str):
    for each in NEVER_ACTED_ON[row]:
        rule, xid = ("gpu-xid", each) if isinstance(each, int) else (each, None)
        assert recommended_operation(rule, xid) == ""
        with_sign = [*map(a_sign, SECOND_SIGNS[:1]), a_sign(rule, xid, times=9)]
        assert keys(*with_sign) == []


def test_what_nvidia_leaves_to_the_application_or_ignores_is_no_trigger():
    """Section 7, never: any Xid that the catalogue says RESTART_APP or IGNORE."""
    harmless = {number for number, its in XIDS.items() if its.action in (XidAction.RESTART_APP, XidAction.IGNORE)}
    assert harmless > {13, 31, 43, 45, 63, 94, 137}
    assert all(trigger_of("gpu-xid", number) is None for number in NEVER_XIDS)
    assert not harmless & {xid for trigger in TRIGGERS for xid in trigger.xids}


def test_43_pages_nobody_and_45_is_no_fault():
    assert {ACTIONS[XIDS[number].action].severity for number in (43, 45)} == {""}
    assert fault_of(45) is Fault.NONE


def test_a_pass_after_48_or_95_is_one_of_the_memory():
    """48: never return without a look at the remap; the round of steps has the other half."""
    assert needed_tests("gpu-xid", 48)[0] == "dcgm-3"
    assert not covers("dcgm-2", "gpu-xid", 48)
    assert not covers("nccl", "gpu-xid", 48)


@pytest.mark.parametrize("xid", [64, None])
def test_a_failed_remap_is_not_rebooted_twice(xid: int | None):
    trigger = trigger_of("gpu-xid" if xid else "gpu-row-remap", xid)
    assert trigger
    kinds = [repair_kind(trigger.key, attempt, EVERY_REPAIR - {RepairKind.GPU_RESET}) for attempt in range(3)]
    assert kinds.count(RepairKind.REBOOT) <= 1


@pytest.mark.parametrize("xid", [74, *range(144, 151)])
def test_a_fault_of_nvlink_is_not_repaired_without_its_peer_and_tested_between_gpus(xid: int):
    trigger = trigger_of("gpu-xid", xid)
    assert trigger
    assert (REPAIRS[trigger.key], recommended_operation("gpu-xid", xid)) == ((), "quarantine")
    assert needed_tests("gpu-xid", xid)[0] == "nccl"


def test_a_lost_gpu_is_never_reset_and_never_waited_for():
    for rule, xid in (("gpu-xid", 79), ("gpu-silent", None)):
        trigger = trigger_of(rule, xid)
        assert trigger
        assert recommended_operation(rule, xid) == "drain"
        assert RepairKind.GPU_RESET not in REPAIRS[trigger.key]
        assert repair_kind(trigger.key, 0, frozenset({RepairKind.GPU_RESET})) is None


def test_95_takes_the_neighbours_off_the_node_and_154_is_weighed_against_no_older_xid():
    assert recommended_operation("gpu-xid", 95) == "drain"
    assert keys(a_sign("gpu-xid", 31, times=9), a_sign("gpu-recovery-action", finding=2)) == ["needs-reset"]


@pytest.mark.parametrize("xid", [109, 119, 120])
def test_a_gsp_error_asks_for_no_other_hardware_first(xid: int):
    trigger = trigger_of("gpu-xid", xid)
    assert trigger
    assert RepairKind.HARDWARE not in REPAIRS[trigger.key]
    assert keys(a_sign("gpu-xid", xid)) == [], "once is no sign"


def test_143_does_not_hide_a_lower_count():
    """The count is a finding of its own, and a machine returns no node with it."""
    assert trigger_of("gpu-xid", 143) is None
    assert "allocatable-below-expected" in RULES


def test_replays_of_pcie_are_not_cured_by_a_reset():
    assert not [step for step in PcieReplays.steps if "reset" in step.lower()]


def test_a_fault_of_the_fabric_is_one_node_and_not_its_eight_gpus():
    signs = [a_sign("gpu-xid", 74, finding=number, times=3) for number in range(8)]
    (match,) = matches_in(signs, now=NOON + timedelta(minutes=5))
    assert SameCauses([match]).nodes_like(match, after=EVER) == ["gpu-1"]
    assert trigger_of("gpu-fabric", None) is None


def test_the_table_names_no_rule_of_its_column_never():
    assert not NEVER_RULES & RULES
