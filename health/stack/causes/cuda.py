"""Why the validator's own test pods do not succeed: an error of CUDA's runtime, by its name. Pure.

They run the vectorAdd of cuda-samples. As people met them in gpu-operator's issues: "system not yet initialized" #286,
#1043 (no fabric manager), "no CUDA-capable device is detected" #253, #259, "initialization error" #382, #873 (MIG mode
without slices), #1848; "busy or unavailable" #129 (MIG mode again), #2842 (open modules on a V100); "forward
compatibility was attempted on non supported HW" #277.
"""

from dataclasses import replace

from gpu.compatibility import the_matrix
from gpu.compatibility.ranges import is_older, order
from gpu.operands import TESTS, VALIDATOR
from gpu.versions import version_of
from health.stack.causes.base import Cause, CauseRule, Saying, Signs, words

OF_TESTS = TESTS | {VALIDATOR}

NO_FABRIC = Saying(
    "cuda_no_fabric",
    words("system not yet initialized"),
    "nvidia-smi sees the GPUs, and CUDA cannot use them: they are not joined to the NVSwitch fabric.",
    "Look at the fabric manager: in the log of the driver pod, or systemctl status nvidia-fabricmanager on the node. "
    "It must run, and be of exactly the driver's version.",
    OF_TESTS,
)
TOO_NEW = Saying(
    "cuda_too_new",
    words("cuda driver version is insufficient for cuda runtime version"),
    "The driver is older than the CUDA version that the test was built with.",
    "Take a newer driver, or an operator that still supports this one.",
    OF_TESTS,
)


def insufficient(signs: Signs) -> Cause | None:
    """CUDA says the same of a driver that is too old and of one that the container does not see: the node's label
    tells which (gpu-operator #1947, #1848).
    """
    cause = TOO_NEW(signs)
    if cause is None or not signs.runs_version or is_older(signs.runs_version, _needed(signs)):
        return cause
    return replace(
        cause,
        key="cuda_driver_not_mounted",
        sentence=f"CUDA calls the driver too old, and it is not: this node runs {signs.runs_version}. The test's "
        "container does not get the driver's libraries, or the kernel modules are of the wrong kind for this GPU.",
        action="Look whether the toolkit is ready and the container runtime uses it (CDI, runtime class nvidia). "
        "Blackwell and newer need the open modules: kernelModuleType: open, or auto.",
    )


def _needed(signs: Signs) -> str:
    """The oldest driver for the newest CUDA that the validator's own release can run."""
    matrix = the_matrix()
    validator = version_of(signs.pod.image).removeprefix("v") if signs.pod else ""
    shipped = next((each.driver for each in matrix.releases if each.version == validator), matrix.newest.driver)
    floors = [each.driver for each in matrix.cuda if not is_older(shipped, each.driver)]
    return max(floors, key=order)


NO_DEVICE = Saying(
    "cuda_no_device",
    words("no cuda-capable device is detected"),
    "The test's container got no GPU: it was started without the NVIDIA runtime, or all GPUs are in MIG mode and "
    "without slices.",
    "Look at the toolkit and the container runtime's configuration, and at nvidia-smi -L in the driver pod.",
    OF_TESTS,
)
BUSY = Saying(
    "cuda_busy",
    words("cuda-capable devices?(\\(s\\))? (is/)?are busy or unavailable"),
    "nvidia-smi sees the GPUs, and CUDA may not use them: they are busy or unavailable.",
    "Look at nvidia-smi: MIG mode that is on without slices, or a compute mode that lets one process in. V100 and "
    "older need kernelModuleType: proprietary.",
    OF_TESTS,
)
NO_COMPATIBILITY = Saying(
    "cuda_no_compatibility",
    words("forward compatibility was attempted on non supported hw"),
    "The test was built with a newer CUDA than the driver knows, and this GPU may not make up for it with CUDA's "
    "compatibility libraries: only those of data centers may.",
    "Take a newer driver, or an operator that still supports this one.",
    OF_TESTS,
)
NO_MEMORY = Saying(
    "cuda_no_memory",
    words(r"error code out of memory"),
    "The test gets no memory on the GPU: something else has it all.",
    "nvidia-smi in the driver pod or on the node says what: processes that are no pod's, or pods that share it.",
    OF_TESTS,
)
NO_START = Saying(
    "cuda_no_start",
    words(r"error code (initialization|unknown) error"),
    "nvidia-smi sees the GPUs, and CUDA does not start on them.",
    "Look at nvidia-smi for MIG mode that is on without slices; then in the kernel's log for NVRM and Xid lines, and "
    "whether the module nvidia-uvm is loaded.",
    OF_TESTS,
)

RULES: tuple[CauseRule, ...] = (NO_FABRIC, insufficient, NO_DEVICE, BUSY, NO_COMPATIBILITY, NO_MEMORY, NO_START)
