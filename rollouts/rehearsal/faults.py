"""The faults that a rehearsal can give to a new driver. They say what happens, and know no threshold of a gate. Pure.

A fault hits some of the nodes once they run the new driver: those that share a property, or a random share of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

MOST_SEED = 2**31 - 1


class Effect(StrEnum):
    """Effects on an affected node once the fault has begun there."""

    DRIVER_NEVER_READY = "driver-never-ready"
    VALIDATOR_ABSENT = "validator-absent"
    VALIDATOR_FAILS = "validator-fails"
    PODS_CRASH = "pods-crash"  # CUDA does not work: pods of tenants crash, and so does a test Job
    PODS_STAY_AWAY = "pods-stay-away"  # evicted pods never come back
    XID = "xid"
    ECC = "ecc"
    NODE_LOST = "node-lost"
    NODE_FLAPS = "node-flaps"
    GPU_MISSING = "gpu-missing"
    EXPORTER_SILENT = "exporter-silent"
    SLOWER = "slower"  # at once
    SLOWS_DOWN = "slows-down"  # little by little, after every test Job has passed


@dataclass(frozen=True)
class DriverFault:
    key: str
    title: str
    effect: Effect
    after: timedelta = timedelta(0)  # from the change of a node to the first sign
    factor: str = ""  # all nodes with one value of this property; blank: a random share
    share: float = 1.0  # of the nodes, or of those with the value


FAULTS: Mapping[str, DriverFault] = {
    fault.key: fault
    for fault in (
        DriverFault("bad-driver", "The driver never becomes ready", Effect.DRIVER_NEVER_READY),
        DriverFault("bad-kernel", "CUDA fails on one kernel", Effect.PODS_CRASH, factor="kernel"),
        DriverFault("bad-gpu", "CUDA fails on one GPU product", Effect.PODS_CRASH, factor="gpu_product"),
        DriverFault("bad-for-half", "Half of the nodes no longer run GPU pods", Effect.PODS_CRASH, share=0.5),
        DriverFault("late-xid", "An Xid after 20 minutes", Effect.XID, timedelta(minutes=20), factor="kernel"),
        DriverFault("ecc", "Uncorrectable ECC errors after 10 minutes", Effect.ECC, timedelta(minutes=10), share=0.5),
        DriverFault(
            "validator-absent", "The validator does not become ready again", Effect.VALIDATOR_ABSENT, factor="os_image"
        ),
        DriverFault("validator-fails", "The validator fails", Effect.VALIDATOR_FAILS, factor="kernel"),
        DriverFault("node-lost", "Nodes do not become Ready again", Effect.NODE_LOST, timedelta(minutes=5), share=0.3),
        DriverFault(
            "flapping", "Nodes change between Ready and NotReady", Effect.NODE_FLAPS, timedelta(minutes=5), share=0.3
        ),
        DriverFault("gpu-missing", "A GPU is missing after the change", Effect.GPU_MISSING, share=0.5),
        DriverFault("pods-stay-away", "Evicted pods do not start again", Effect.PODS_STAY_AWAY, factor="kernel"),
        DriverFault("exporter-silent", "The DCGM exporter stays silent", Effect.EXPORTER_SILENT, factor="gpu_product"),
        DriverFault("slower", "15 % fewer tokens per second", Effect.SLOWER, factor="gpu_product"),
        DriverFault(
            "slows-down", "Throughput falls slowly by 15 %", Effect.SLOWS_DOWN, timedelta(minutes=12), factor="kernel"
        ),
    )
}
