"""Why DCGM or its exporter does not come up. Pure.

dcgm-exporter, internal/pkg/dcgmprovider/dcgm.go: "Attempting to connect to remote hostengine at nvidia-dcgm:5555", then
"Failed to connect to remote hostengine", earlier "Error connecting to nv-hostengine: Host engine connection
invalid/disconnected" (gpu-operator #414), or nothing but a caught panic (dcgm-exporter #536). "This request is serviced
by a module of DCGM that is not currently loaded" (dcgm-exporter #22, #707; DCGM #219: 4.2.3 mends some of it).
"CacheManager Init Failed. Error: -17" (dcgm-exporter #443; dcgm_structs.h: -17 is DCGM_ST_NO_PERMISSION).
"DCGM initialization error" (gpu-monitoring-tools #96), "libdcgm.so not Found", "Failed to start host engine server"
(#54). internal/pkg/counters: "could not find DCGM field". internal/pkg/transformation/hpc.go: "Unable to access HPC job
mapping file directory … Ignoring": its series then lack hpc_job.
internal/pkg/dcgmerrors has what its authors advise by the code of DCGM; DCGM's errorString: "Object is in an
undefined state" is DCGM_ST_UNINITIALIZED (dcgm-exporter #368).
"""

import re

from gpu.operands import DCGM_EXPORTERS
from health.stack.causes.base import Cause, CauseRule, Saying, Signs, Weight, words
from health.stack.causes.crash import CRASHES
from kube.log_lines import telling

OF_DCGM = frozenset({"dcgm", "dcgm-dra", *DCGM_EXPORTERS})
ASKED = re.compile(r"connect to remote hostengine at (?P<at>[^\s\"]+)", re.IGNORECASE)
ANSWERED = words("dcgm successfully initialized", "initialized dcgm fields")
REFUSED = words(
    "connecting to nv-hostengine", "failed to connect to remote hostengine", "host ?engine connection (invalid|lost)",
    r"connection to (the )?(remote |nv-)?host ?engine.{0,40}(lost|invalid|refused|fail|closed)",
    "unable to establish a connection to the specified host", "DCGM_ST_CONNECTION_NOT_VALID",
)  # fmt: skip


def no_host_engine(signs: Signs) -> Cause | None:
    """It names the engine and then ends: in its own words, or with a stack. Only a refusal after an answer counts."""
    pod = signs.pod
    if pod is None or signs.operand not in DCGM_EXPORTERS:
        return None
    answered = max((at for at, line in enumerate(pod.log) if ANSWERED.search(line)), default=-1)
    refusals = [line for line in pod.log[answered + 1 :] if REFUSED.search(line)]
    ended = next((line for line in (pod.last_words, pod.message) if REFUSED.search(line)), "")
    said = telling(refusals) or ended
    asked = next((found for line in reversed(pod.log) if (found := ASKED.search(line))), None)
    if not said and not (asked and answered < 0 and pod.reason in CRASHES):
        return None
    where = f" at {asked['at']}" if asked else ""
    return Cause(
        "dcgm_unreachable",
        Weight.WRONG,
        f"It cannot reach DCGM's host engine{where}.",
        signs.advice(
            "Look at the nvidia-dcgm pod of this node and at its Service. With dcgm.enabled: false in the "
            "ClusterPolicy the exporter runs one of its own.",
            "Look whether nv-hostengine runs there and listens on that port (DCGM_REMOTE_HOSTENGINE_INFO). Without "
            "that variable the exporter runs one of its own.",
        ),
        said.strip() or pod.telling,
    )


NO_MODULE = Saying(
    "dcgm_module",
    words("module of dcgm that is not currently loaded", "profiling module.*(fail|not|unable)",
          "(fail|unable).*profiling module"),
    "A module of DCGM does not load on this node: most often the one for profiling (DCGM_FI_PROF_*).",
    "Take a DCGM that knows this driver and GPU. Or leave the DCGM_FI_PROF_* lines out of the exporter's metrics; it "
    "profiles with SYS_ADMIN only, and not beside another profiler or host engine.",
    OF_DCGM,
    is_told_as_trouble=True,  # for information it is said by every exporter that goes on without
)  # fmt: skip
NO_LIBRARY = Saying(
    "dcgm_no_library",
    words(r"libdcgm\.so\S*( library)?( was)? not found", r"libdcgm\.so\S*: cannot open"),
    "It does not find DCGM's library.",
    "Take an image that has it, or install datacenter-gpu-manager where it runs without one.",
    OF_DCGM,
)
NO_RIGHTS = Saying(
    "dcgm_no_rights",
    words(r"cachemanager init failed\. error: -17\b", "DCGM_ST_NO_PERMISSION", "DCGM_ST_REQUIRES_ROOT"),
    "DCGM may not read a GPU of this node: its container lacks the rights (DCGM_ST_NO_PERMISSION).",
    "Look at its security context: it needs root, and privileged or SYS_ADMIN.",
    OF_DCGM,
)
NO_START = Saying(
    "dcgm_no_start",
    words("error starting nv-hostengine", "failed to start (dcgm|host engine)", "dcgm initialization error",
          "host ?engine (is )?already running", "unable to terminate host engine", "err: failed to start",
          "cachemanager init failed"),
    "DCGM's host engine does not start on this node.",
    "Look whether nvidia-smi runs in the driver pod or on the host, whether another nv-hostengine has the port, and "
    "whether this DCGM knows the driver.",
    OF_DCGM,
    alone="Look whether nvidia-smi runs on the node, whether another nv-hostengine has the port, and whether this DCGM "
    "knows the driver.",
)  # fmt: skip
OTHER_RELEASE = Saying(
    "dcgm_other_release",
    words("object is in an undefined state", "api version mismatch",
          "dcgm_st_(uninitialized|ver_mismatch|function_not_found)", "dcgm (is uninitialized|version mismatch)",
          "required dcgm function was not found"),
    "The exporter and DCGM's library or host engine do not fit each other: they are of unlike releases.",
    "Take exporter and DCGM of one release, such as NVIDIA's own image: the end of its tag names both. Restart the "
    "host engine first where it was updated under the exporter.",
    OF_DCGM,
)  # fmt: skip
OLD_DRIVER = Saying(
    "dcgm_old_driver",
    words("dcgm_st_insufficient_driver_version", "driver version is insufficient for dcgm"),
    "The driver of this node is too old for this DCGM.",
    "Take a newer driver, or an older release of DCGM and its exporter.",
    OF_DCGM,
)
NO_FIELD = Saying(
    "dcgm_metrics",
    words("could not find dcgm field", "failed to get counters", "error getting the metrics", "malformed .*csv"),
    "It cannot read the list of metrics that it is given.",
    "What it says names the line: a field that this DCGM does not know, or a misspelt one. Look at the ConfigMap that "
    "holds the exporter's CSV.",
    frozenset(DCGM_EXPORTERS),
)
NO_JOBS = Saying(
    "dcgm_hpc_jobs",
    words("hpc job mapping.*(not found|fail|denied|ignoring)", "(unable|failed|cannot).*hpc job"),
    "It cannot read which job of the batch system has which GPU.",
    "Look at DCGM_HPC_JOB_MAPPING_DIR: the batch system's prolog writes a file for each GPU there, and the pod mounts "
    "that folder of the host.",
    frozenset(DCGM_EXPORTERS),
)

RULES: tuple[CauseRule, ...] = (OTHER_RELEASE, OLD_DRIVER, no_host_engine, NO_RIGHTS, NO_MODULE, NO_LIBRARY, NO_FIELD)
# Most often it is the driver's library or module that is missing, and that is said beside it.
LAST: tuple[CauseRule, ...] = (NO_START, NO_JOBS)
