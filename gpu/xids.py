"""NVIDIA's catalogue of Xids and of recovery actions, as data: what each asks for. For Ampere and newer.

Source: Xid-Catalog.xlsx of 2025-09-30 (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html), the column of the
immediate action. Where it names a workflow, `WORKFLOWS` has what can be seen of that from outside. Numbers that are not
here are in none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple


class XidAction(StrEnum):
    IGNORE = "ignore"
    RESTART_APP = "restart-app"  # an application's error: the hardware is not blamed for one
    RESET_GPU = "reset-gpu"
    DRAIN_AND_RESET = "drain-and-reset"
    RUN_DIAGNOSTICS = "run-diagnostics"  # RUN_DCGMEUD, then RUN_FIELDDIAGS
    RESTART_NODE = "restart-node"  # RESTART_BM
    RESTART_VM = "restart-vm"
    CONTACT_SUPPORT = "contact-support"
    CHECK_MECHANICALS = "check-mechanicals"
    UPDATE_SOFTWARE = "update-software"
    CHECK_UVM = "check-uvm"
    FOLLOW_TEXT = "follow-text"  # 154: what it says is the verdict
    NVLINK = "nvlink"  # its workflow
    DRAIN_P2P = "drain-p2p"
    RECOVER_IMEX = "recover-imex"


@dataclass(frozen=True)
class Xid:
    number: int
    action: XidAction
    title: str = ""
    note: str = ""  # blank: its action says it
    points_at_driver: bool = False  # after a change of the driver it is the first suspect
    reason: str = ""  # the probable cause, in a sentence. Blank: its action says whose it is
    outlasts_app: bool = False  # of an application's: it asks for a reset as well, and stays until there was one


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
    BESIDE = "beside"  # with another on the same GPU, so soon before or after it that the two are one trouble
    AGAIN = "again"  # so often in a time, and on no other GPU of its cluster nearly so
    SPREAD = "spread"  # on another GPU nearly as often: within one, as those of one job are not found in one moment


class XidWorkflow(NamedTuple):
    """What an Xid asks for by what else there was. Pure data; the first that fits is followed."""

    number: int
    pattern: XidPattern
    action: XidAction
    says: str  # the probable cause, with {other}, the one beside it, or {times}
    source: str
    others: frozenset[int] = frozenset()
    times: int = 1
    within: timedelta = timedelta(0)
    asks: str = ""  # beside what its action does
    is_of_node: bool = False  # counted on all GPUs of its node; else on the GPU

    def came_with(self, beside: Mapping[int, timedelta]) -> list[int]:
        """Of those beside it, by how long before or after it each came, the ones that are one trouble with it."""
        return sorted(number for number, apart in beside.items() if number in self.others and apart <= self.within)

    def fits(self, beside: Mapping[int, timedelta], again: int, elsewhere: int) -> bool:
        """`again`: how often it was here, this time counted; `elsewhere`: the most that another GPU had it."""
        match self.pattern:
            case XidPattern.BESIDE:
                return bool(self.came_with(beside))
            case XidPattern.AGAIN:
                return again >= self.times and (self.is_of_node or elsewhere < again - 1)
            case XidPattern.SPREAD:
                return elsewhere >= max(again - 1, self.times)


CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
NVSENTINEL = "NVIDIA/NVSentinel:docs/designs/014-workflow-XID-13-and-31.md"  # how often, and in which time
OURS = "Quarterdeck"
DAY, MONTH = timedelta(days=1), timedelta(days=30)
# Ours: the driver logs both at once, and a gauge that shows one at a time tells of them a few samples apart.
TOGETHER = timedelta(minutes=10)
# Of 13 only the kernel log says what its workflow goes by: the place on the chip. Of 45 nobody says whether a process
# that was killed left it behind (Z22): it is told neither alone, where the catalogue asks for the Fabric Manager to be
# restarted, nor with others, where those are to be followed.
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
    """None: none fits, and what its row says holds."""
    rows = (row for row in WORKFLOWS if row.number == number)
    return next((row for row in rows if row.fits(beside, again, elsewhere)), None)


class RecoveryAction(NamedTuple):
    title: str
    action: XidAction


# NVML's nvmlDeviceGpuRecoveryAction_t by its number, as DCGM's field 1523 exports it. docs.nvidia.com/deploy/nvml-api,
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
# What 154 says, from R565 on, without "Required" at its end. Drivers of R610 write OS Reboot and PF FLR, which is a
# reset of the GPU's physical function (NVIDIA/open-gpu-kernel-modules #1271, #1284).
VERDICTS: Mapping[str, XidAction] = {
    **{each.title.lower(): each.action for each in RECOVERY_ACTIONS.values()},
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
    """The recovery action that a 154 changes to."""

    title: str  # as its text calls it; blank: it names none
    action: XidAction | None  # None: none that is known


def verdict_of(words: str) -> RecoveryVerdict:
    """Read what follows the last "to": its text is believed, and its number where it has no text."""
    said = _CHANGED_TO.search(words)
    number, title = (said[1], said[2] or "") if said else (None, words)
    title = title.strip()
    if title:
        return RecoveryVerdict(title, VERDICTS.get(title.lower().removesuffix("required").strip()))
    known = RECOVERY_ACTIONS.get(int(number, 16)) if number else None
    return RecoveryVerdict(known.title if known else number or "", known.action if known else None)


def verdict_in(words: str) -> XidAction | None:
    """The action of a 154. None: its text names none that is known."""
    return verdict_of(words).action
