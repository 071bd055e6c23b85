"""What goes wrong on nodes in a month, and what mends it. It knows no trigger and no limit of the product. Pure.

Shares follow the causes of stops in large trainings (Llama 3, arXiv 2407.21783, table 5): mostly GPUs and their memory,
then links, and many signs of workloads that are no fault of the node.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Shown:
    """A sign of a fault, as a rule reports it."""

    rule: str
    after: timedelta = timedelta(0)  # from the begin of the fault
    xid: int | None = None
    is_critical: bool = False
    lasts: timedelta | None = None  # None: until the fault is mended
    times: int = 1  # that it opened


@dataclass(frozen=True)
class Fault:
    key: str
    weight: int  # of all faults
    shown: tuple[Shown, ...]
    mended_by: str  # "reboot", "part" of hardware, or "nobody": it is no fault of the node, and passes by itself


SOON, LATER = timedelta(seconds=30), timedelta(minutes=4)
BRIEFLY, FOR_HOURS = timedelta(minutes=3), timedelta(hours=2)
FAULTS: Mapping[str, Fault] = {
    fault.key: fault
    for fault in (
        Fault(
            "off-the-bus", 20,
            (
                Shown("gpu-xid", xid=79, is_critical=True),
                Shown("gpu-silent", SOON, is_critical=True),
                Shown("allocatable-below-expected", LATER),
            ),
            "reboot",
        ),
        Fault("lost", 10, (Shown("gpu-silent", is_critical=True), Shown("allocatable-below-expected", SOON)), "reboot"),
        Fault(
            "row-remap", 15,
            (Shown("gpu-xid", xid=64, is_critical=True), Shown("gpu-row-remap", SOON, is_critical=True)), "part",
        ),
        Fault(
            "uncontained", 10,
            (Shown("gpu-xid", xid=95, is_critical=True), Shown("gpu-ecc-uncorrected", SOON, is_critical=True)),
            "reboot",
        ),
        Fault("gsp", 10, (Shown("gpu-xid", xid=119, is_critical=True, times=2),), "reboot"),
        Fault(
            "nvlink", 8,
            (Shown("gpu-xid", xid=74, is_critical=True, times=3), Shown("gpu-nvlink-errors", SOON)), "part",
        ),
        Fault("needs-reset", 10, (Shown("gpu-recovery-action", is_critical=True),), "reboot"),
        Fault("detector", 5, (Shown("node-conditions", is_critical=True),), "part"),
        Fault("lone-xid", 6, (Shown("gpu-xid", xid=79, is_critical=True),), "reboot"),
        Fault(
            "application", 25,
            (Shown("gpu-xid", xid=31, lasts=FOR_HOURS), Shown("pods-failing", SOON, lasts=FOR_HOURS)), "nobody",
        ),
        Fault("killed-workload", 15, (Shown("gpu-xid", xid=45, lasts=FOR_HOURS),), "nobody"),
        Fault("contained", 6, (Shown("gpu-xid", xid=94, lasts=FOR_HOURS),), "nobody"),
        Fault(
            "hot", 10,
            (Shown("gpu-hot", lasts=FOR_HOURS), Shown("gpu-throttled", SOON, lasts=FOR_HOURS)), "nobody",
        ),
        Fault(
            "exporter-restarts", 10,
            (Shown("exporter-silent", lasts=BRIEFLY), Shown("telemetry-silent", lasts=BRIEFLY)), "nobody",
        ),
        Fault("plugin-restarts", 10, (Shown("allocatable-below-expected", lasts=BRIEFLY),), "nobody"),
    )
}  # fmt: skip
# The driver is at fault, and no node is. Rolled back, all are well.
STORM = Fault(
    "bad-driver",
    0,
    (Shown("gpu-xid", xid=119, is_critical=True, times=2), Shown("gpu-recovery-action", LATER, is_critical=True)),
    "driver",
)
