"""NVIDIA's catalogue of Xids and recovery actions as data, for Ampere and newer.

Source: Xid-Catalog.xlsx of 2025-09-30 (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html), the column of
the immediate action. Where it names a workflow, `WORKFLOWS` has the part that is observable from outside. Numbers
that are missing here are missing there.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple


class XidAction(StrEnum):
    IGNORE = "ignore"
    RESTART_APP = "restart-app"  # an application's error; the hardware is not suspected
    RESET_GPU = "reset-gpu"
    DRAIN_AND_RESET = "drain-and-reset"
    RUN_DIAGNOSTICS = "run-diagnostics"  # RUN_DCGMEUD, then RUN_FIELDDIAGS
    RESTART_NODE = "restart-node"  # RESTART_BM
    RESTART_VM = "restart-vm"
    CONTACT_SUPPORT = "contact-support"
    CHECK_MECHANICALS = "check-mechanicals"
    UPDATE_SOFTWARE = "update-software"
    CHECK_UVM = "check-uvm"
    FOLLOW_TEXT = "follow-text"  # 154: its text has the action
    NVLINK = "nvlink"  # NVIDIA's NVLink workflow
    DRAIN_P2P = "drain-p2p"
    RECOVER_IMEX = "recover-imex"


@dataclass(frozen=True)
class Xid:
    number: int
    action: XidAction
    title: str = ""
    note: str = ""  # blank: the action is enough
    points_at_driver: bool = False  # after a driver change, the driver is the first suspect
    reason: str = ""  # the probable cause as a sentence; blank: see its action
    outlasts_app: bool = False  # an application's error that also needs a GPU reset, and stays until then


# docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt, Response to Uncorrectable Contained ECC Errors.
CONTAINED = (
    "Its memory had an error that ECC could not correct. It was contained: who met it was ended, nobody else is hit."
)
SRAM = "After that see nvidia-smi -q: where SRAM Threshold Exceeded says Yes, run field diagnostics."


def _catalogue() -> Mapping[int, Xid]:
    act = XidAction
    application = (
        8, 11, 25, 32, 39, 40, 41, 60, 68, 69, 70, 71, 72, 75, 76, 77, 82, 83, 84, 85, 86, 88, 89, *range(96, 106),
        *range(126, 136), 139,
    )  # fmt: skip
    ignored = (37, 38, 43, 44, 66, 67, 93, 106, 107, 137, 141, 157, 160, 161)
    reset = (46, 110, 136, 155, 156, 158)
    rows = [
        *(Xid(number, act.RESTART_APP) for number in application),
        *(Xid(number, act.IGNORE) for number in ignored),
        *(Xid(number, act.RESET_GPU) for number in reset),
        *(Xid(number, act.NVLINK, "NVLink error") for number in range(144, 151)),
        Xid(13, act.RESTART_APP, "Graphics engine exception", "Where it comes again on one GPU alone, suspect that."),
        Xid(31, act.RESTART_APP, "GPU memory page fault", "Where it comes again on one GPU alone, suspect that."),
        Xid(45, act.IGNORE, "Preemptive cleanup", "Normal when a process is killed, as by an eviction."),
        Xid(48, act.RESET_GPU, "Double bit ECC error", SRAM),
        Xid(54, act.CHECK_MECHANICALS, "Auxiliary power is not connected"),
        Xid(62, act.RESET_GPU, "Internal micro-controller halt", points_at_driver=True),
        Xid(63, act.IGNORE, "Row remapping event", "A remap that is pending needs a reset in the next quiet hour."),
        Xid(64, act.RESET_GPU, "Row remapping failure", "Have the board replaced if it comes again."),
        Xid(74, act.NVLINK, "NVLink error"),
        Xid(78, act.UPDATE_SOFTWARE, "The guest's driver does not fit the host's vGPU driver", points_at_driver=True),
        Xid(79, act.RESTART_NODE, "GPU has fallen off the bus"),
        Xid(92, act.CONTACT_SUPPORT, "High rate of corrected memory errors", "Nothing is wrong yet."),
        Xid(
            94, act.RESTART_APP, "Contained memory error",
            "Reset the GPU in its next quiet hour, so that the row is remapped.", reason=CONTAINED, outlasts_app=True,
        ),
        Xid(95, act.RESET_GPU, "Uncontained memory error", "Whatever ran on it may have computed with wrong numbers."),
        Xid(109, act.RESET_GPU, "Context switch timeout", points_at_driver=True),
        Xid(119, act.RESET_GPU, "GSP does not answer", points_at_driver=True),
        Xid(120, act.RESET_GPU, "GSP error", points_at_driver=True),
        Xid(121, act.IGNORE, "Corrected error on the chip-to-chip link", "Reset in the next quiet hour."),
        Xid(140, act.RESET_GPU, "ECC error that was not recovered"),
        Xid(142, act.CONTACT_SUPPORT),
        Xid(143, act.RESET_GPU, "GPU could not be initialised", points_at_driver=True),
        Xid(151, act.RESTART_VM),
        Xid(154, act.FOLLOW_TEXT, "GPU recovery action changed"),
        Xid(159, act.CHECK_UVM),
    ]  # fmt: skip
    return {row.number: row for row in rows}


XIDS: Mapping[int, Xid] = _catalogue()


class XidPattern(StrEnum):
    BESIDE = "beside"  # with another on the same GPU, within a time that makes both one incident
    AGAIN = "again"  # repeated within a time, and on no other GPU of its cluster nearly as often
    # On another GPU nearly as often: within one, since Xids of one job are not recorded at the same moment
    SPREAD = "spread"


class XidWorkflow(NamedTuple):
    """The action for an Xid in the context of others. Pure data; the first match counts."""

    number: int
    pattern: XidPattern
    action: XidAction
    says: str  # the probable cause, with {other} (the accompanying Xid) or {times}
    source: str
    others: frozenset[int] = frozenset()
    times: int = 1
    within: timedelta = timedelta(0)
    asks: str = ""  # in addition to its action
    is_of_node: bool = False  # counted on all GPUs of its node; else on the GPU

    def came_with(self, beside: Mapping[int, timedelta]) -> list[int]:
        """Returns the accompanying Xids of one incident. `beside` has the time between each and this one."""
        return sorted(
            number for number, distance in beside.items() if number in self.others and distance <= self.within
        )

    def fits(self, beside: Mapping[int, timedelta], again: int, elsewhere: int) -> bool:
        """Tells whether it applies. `again` counts this GPU's occurrences; `elsewhere` is the highest count on
        another GPU."""
        match self.pattern:
            case XidPattern.BESIDE:
                return bool(self.came_with(beside))
            case XidPattern.AGAIN:
                return again >= self.times and (self.is_of_node or elsewhere < again - 1)
            case XidPattern.SPREAD:
                return elsewhere >= max(again - 1, self.times)


CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
NVSENTINEL = "NVIDIA/NVSentinel:docs/designs/014-workflow-XID-13-and-31.md"  # thresholds and time windows
OURS = "Quarterdeck"
DAY, MONTH = timedelta(days=1), timedelta(days=30)
# Our value: the driver logs both at once, but a gauge with one Xid at a time shows them some samples apart.
TOGETHER = timedelta(minutes=10)
# The workflow of 13 needs the position on the chip, which only the kernel log has. For 45 it is unknown whether a
# killed process caused it (Z22): it is reported neither alone, where the catalogue asks for a restart of the Fabric
# Manager, nor with others, where those count.
WORKFLOWS: tuple[XidWorkflow, ...] = (
    XidWorkflow(
        48, XidPattern.BESIDE, XidAction.DRAIN_AND_RESET,
        "Xid {other} came with it: a row of its memory is to be remapped, or could not be.",
        CATALOGUE, others=frozenset({63, 64}), within=TOGETHER,
    ),
    XidWorkflow(
        79, XidPattern.AGAIN, XidAction.RESTART_NODE,
        "This node has had it {times} times in thirty days, more than 3: it is the hardware.",
        OURS, times=4, within=MONTH, asks="Have the hardware replaced.", is_of_node=True,
    ),
    *(
        XidWorkflow(
            number, XidPattern.AGAIN, XidAction.RUN_DIAGNOSTICS,
            "This GPU has had it {times} times within a day, and no other of its cluster nearly so often: it may be "
            f"the hardware{beyond}.",
            NVSENTINEL, times=3, within=DAY,
        )
        for number, beyond in (
            (13, ", and is likely to be where the kernel log names the same GPC and TPC each time"), (31, ""),
        )
    ),
    *(
        XidWorkflow(
            number, XidPattern.SPREAD, XidAction.RESTART_APP,
            "Other GPUs of its cluster have had it within a day, too: it is the application.",
            CATALOGUE, within=DAY, asks="Look for it with cuda-gdb or the Compute Sanitizer.",
        )
        for number in (13, 31)
    ),
)  # fmt: skip
COUNTED_WITHIN: Mapping[int, timedelta] = {
    row.number: row.within for row in WORKFLOWS if row.pattern is not XidPattern.BESIDE
}


def workflow_of(number: int, beside: Mapping[int, timedelta], again: int, elsewhere: int) -> XidWorkflow | None:
    """Returns the first matching workflow. None: the row's own action counts."""
    rows = (row for row in WORKFLOWS if row.number == number)
    return next((row for row in rows if row.fits(beside, again, elsewhere)), None)


class RecoveryAction(NamedTuple):
    title: str
    action: XidAction


# NVML's nvmlDeviceGpuRecoveryAction_t by number, as exported in DCGM's field 1523. docs.nvidia.com/deploy/nvml-api,
# nvml.h of CUDA 13.4: 5 to 7 are new there.
RECOVERY_ACTIONS: Mapping[int, RecoveryAction] = {
    0: RecoveryAction("None", XidAction.IGNORE),
    1: RecoveryAction("GPU Reset", XidAction.RESET_GPU),
    2: RecoveryAction("Node Reboot", XidAction.RESTART_NODE),
    3: RecoveryAction("Drain P2P", XidAction.DRAIN_P2P),
    4: RecoveryAction("Drain and Reset", XidAction.DRAIN_AND_RESET),
    5: RecoveryAction("Recover IMEX Domain", XidAction.RECOVER_IMEX),
    6: RecoveryAction("Bus Reset", XidAction.RESET_GPU),
    7: RecoveryAction("System Reboot", XidAction.RESTART_NODE),
}
# The texts of 154 since R565, without "Required" at the end. Drivers of R610 write OS Reboot and PF FLR, which is a
# reset of the GPU's physical function (NVIDIA/open-gpu-kernel-modules #1271, #1284).
VERDICTS: Mapping[str, XidAction] = {
    **{recovery.title.lower(): recovery.action for recovery in RECOVERY_ACTIONS.values()},
    "drain p2p and reset": XidAction.DRAIN_AND_RESET,
    "reset": XidAction.RESET_GPU,
    "pf flr": XidAction.RESET_GPU,
    "flr": XidAction.RESET_GPU,
    "os reboot": XidAction.RESTART_NODE,
    "reboot": XidAction.RESTART_NODE,
    "cold reboot": XidAction.RESTART_NODE,
}
_CHANGED_TO = re.compile(r"\bto\b\s*(0x[0-9a-f]+)?\s*(?:\(([^()]*)\)?)?\s*\.?\s*$", re.IGNORECASE)


class RecoveryVerdict(NamedTuple):
    """The recovery action in an Xid 154."""

    title: str  # as in its text; blank: none
    action: XidAction | None  # None: unknown


def verdict_of(text: str) -> RecoveryVerdict:
    """Parses the text after the last "to"; the number counts only without a text."""
    match = _CHANGED_TO.search(text)
    number, title = (match[1], match[2] or "") if match else (None, text)
    title = title.strip()
    if title:
        return RecoveryVerdict(title, VERDICTS.get(title.lower().removesuffix("required").strip()))
    known = RECOVERY_ACTIONS.get(int(number, 16)) if number else None
    return RecoveryVerdict(known.title if known else number or "", known.action if known else None)


def verdict_in(text: str) -> XidAction | None:
    """Returns the action of a 154. None: unknown."""
    return verdict_of(text).action
