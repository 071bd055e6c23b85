"""NVIDIA's catalogue of Xids, as data: what each asks for. For Ampere and newer.

Source: Xid-Catalog.xlsx of 2025-09-30 (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html), the column of the
immediate action. Where it names a workflow, the note says what that comes to. Numbers that are not here are in none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class XidAction(StrEnum):
    IGNORE = "ignore"
    RESTART_APP = "restart-app"  # an application's error: the hardware is not blamed for one
    RESET_GPU = "reset-gpu"
    RESTART_NODE = "restart-node"  # RESTART_BM
    RESTART_VM = "restart-vm"
    CONTACT_SUPPORT = "contact-support"
    CHECK_MECHANICALS = "check-mechanicals"
    UPDATE_SOFTWARE = "update-software"
    CHECK_UVM = "check-uvm"
    FOLLOW_TEXT = "follow-text"  # 154: what it says is the verdict
    NVLINK = "nvlink"  # its workflow


@dataclass(frozen=True)
class Xid:
    number: int
    action: XidAction
    title: str = ""
    note: str = ""  # blank: its action says it
    points_at_driver: bool = False  # after a change of the driver it is the first suspect


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
        Xid(13, act.RESTART_APP, "Graphics engine exception", "Where it comes again on one GPU, it is the hardware."),
        Xid(31, act.RESTART_APP, "GPU memory page fault", "Where it comes again on one GPU, it is the hardware."),
        Xid(45, act.IGNORE, "Preemptive cleanup", "Normal when a process is killed, as by an eviction."),
        Xid(48, act.RESET_GPU, "Double bit ECC error", "With 63 or 64 after it: drain the node, then reset."),
        Xid(54, act.CHECK_MECHANICALS, "Auxiliary power is not connected"),
        Xid(62, act.RESET_GPU, "Internal micro-controller halt", points_at_driver=True),
        Xid(63, act.IGNORE, "Row remapping event", "A remap that is pending needs a reset in the next quiet hour."),
        Xid(64, act.RESET_GPU, "Row remapping failure", "Drain, then reset; replace the board if it comes again."),
        Xid(74, act.NVLINK, "NVLink error"),
        Xid(78, act.UPDATE_SOFTWARE, "The guest's driver does not fit the host's vGPU driver", points_at_driver=True),
        Xid(79, act.RESTART_NODE, "GPU has fallen off the bus"),
        Xid(92, act.CONTACT_SUPPORT, "High rate of corrected memory errors", "Nothing is wrong yet."),
        Xid(94, act.RESTART_APP, "Contained memory error", "Only its own application is hit; reset when convenient."),
        Xid(95, act.RESET_GPU, "Uncontained memory error", "Others on this GPU may be hit: drain first."),
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

# What 154 says, from R565 on; the texts in lower case.
VERDICTS: Mapping[str, XidAction] = {
    "none": XidAction.IGNORE,
    "drain p2p": XidAction.NVLINK,
    "drain and reset": XidAction.RESET_GPU,
    "gpu reset required": XidAction.RESET_GPU,
    "node reboot required": XidAction.RESTART_NODE,
}


def verdict_in(words: str) -> XidAction | None:
    """The action that the text of a 154 names last: it says from what to what it changed. None: none that is known."""
    said = words.lower()
    last = max(VERDICTS, key=lambda text: (said.rfind(text), len(text)))
    return VERDICTS[last] if last in said else None
