"""Node conditions: reporter, polarity, severity and recommended action.

kubernetes.io/docs/reference/node/node-status, node-lifecycle-conditions: Kubernetes' own. kubernetes/
node-problem-detector, config/: bad when True. Azure/AgentBaker, e2e/validators.go and learn.microsoft.com/azure/aks/
node-problem-detector: AKS'. aws/eks-node-monitoring-agent, pkg/reasons/reasons.yaml: EKS', bad when False.
docs.nebius.com, kubernetes/maintenance/health-checks. NVIDIA/NVSentinel, platform-connectors: a check is True with
the reason <check>IsNotHealthy, its messages end with "Recommended Action=…;". ROCm/gpu-operator, docs/npd: AMD's.
facebookresearch/gcm: Gcm…Problem. k3s: EtcdIsVoter. leptonai/gpud writes none; query it on the machine itself.
GoogleCloudPlatform/container-engine-accelerators #497: XidCriticalError of GKE's device plugin has its Xids in the
reason, {"31":true}, and stays until the machine restarts. oracle-quickstart/oci-hpc-oke, docs/running-gpu-rdma-
healthchecks-with-node-problem-detector.md: OKE's, with reasons such as GpuCountHasIssues and GpuCountHasNoIssues.

An unlisted type is classified by its name, or else by its reason. If neither tells, its polarity is unknown.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gpu.dcgm_errors import DcgmSeverity, dcgm_error_in
from gpu.health_labels import AUTOPILOT, DOUBTED, FAILED, HEALTH, PASSED
from gpu.kernel_lines import kernel_line_in
from gpu.xids import XIDS, XidAction

KUBELET, DETECTOR, NVSENTINEL = "kubelet", "node-problem-detector", "NVSentinel"
AKS, EKS, GKE, NEBIUS, AMD, GCM, K3S, OKE = (
    "AKS", "EKS node monitoring agent", "GKE's device plugin", "Nebius", "AMD's node-problem-detector", "GCM", "k3s",
    "OKE's node-problem-detector",
)  # fmt: skip
UNNAMED = "unknown detector"
READY = "Ready"  # of the kubelet; it has its own rules
RUNS_OUT = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure"})
NETWORK = "NetworkUnavailable"
# Life cycle conditions of Kubernetes: neither faults nor reports of a detector.
LIFECYCLE = frozenset({
    "DrainInProgress", "Drained", "MaintenancePlanned", "MaintenanceInProgress", "GracefulNodeShutdownInProgress",
})  # fmt: skip
PRESSURES = RUNS_OUT | {NETWORK}  # of the kubelet: stored only when they report a fault


class ConditionVerdict(StrEnum):
    WRONG = "wrong"
    FINE = "fine"
    UNKNOWN = "unknown"  # unknown polarity, or a status that is neither True nor False


class ConditionSeverity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class ConditionReading:
    verdict: ConditionVerdict
    reporter: str
    severity: ConditionSeverity = ConditionSeverity.WARNING  # of a fault
    action: str = ""  # recommended actions from the message, without repetition; blank: none
    xids: tuple[int, ...] = ()  # named in the message


# The reporter of each type. Bad when True, except those in `BAD_WHEN_FALSE`.
REPORTERS: Mapping[str, str] = {
    **dict.fromkeys((*RUNS_OUT, NETWORK), KUBELET),
    **dict.fromkeys(
        (
            "KernelDeadlock", "ReadonlyFilesystem", "CorruptDockerOverlay2", "FrequentKubeletRestart",
            "FrequentDockerRestart", "FrequentContainerdRestart", "FrequentUnregisterNetDevice", "KubeletUnhealthy",
            "ContainerRuntimeUnhealthy", "XfsShutdown", "CperHardwareErrorFatal",
        ),
        DETECTOR,
    ),
    **dict.fromkeys(
        (
            "GpuMemWatch", "GpuNvlinkWatch", "GpuPcieWatch", "GpuPowerWatch", "GpuSmWatch", "GpuThermalWatch",
            "GpuThermalMarginWatch", "GpuInforomWatch", "GpuMcuWatch", "GpuPmuWatch", "GpuDriverWatch", "GpuAllWatch",
            "GpuNvswitchFatalWatch", "GpuNvswitchNonfatalWatch", "GpuDcgmConnectivityFailure", "GpuXidError",
            "SysLogsXIDError", "SysLogsSXIDError", "SysLogsGPUFallenOff", "SysLogsNICDriverError",
        ),
        NVSENTINEL,
    ),
    **dict.fromkeys(
        (
            "FilesystemCorruptionProblem", "KubeletProblem", "ContainerRuntimeProblem", "VMEventScheduled",
            "GPUMissing", "NVLinkStatusInactive", "XIDErrors", "IBLinkFlapping", "GPUClockThrottling",
            "UnhealthyNvidiaDevicePlugin", "UnhealthyNvidiaDCGMServices", "UnhealthyNvidiaGridLicenseStatus",
        ),
        AKS,
    ),
    **dict.fromkeys(
        ("AcceleratedHardwareReady", "ContainerRuntimeReady", "KernelReady", "NetworkingReady", "StorageReady"), EKS
    ),
    **dict.fromkeys(
        (
            "GpuCount", "GpuEcc", "GpuRowRemap", "GpuBus", "GpuPcie", "GpuFabricMgr", "GpuXid", "GpuBadPages",
            "GpuImex", "NvlinkSpeed", "DcgmiHealth", "Rocminfo", "RdmaLink", "RdmaLinkFlapping", "RdmaWpaAuth",
            "RdmaRttcc", "RdmaVfRoutes", "RdmaVfCounters",
        ),
        OKE,
    ),
    **dict.fromkeys(("NebiusGPUError", "NebiusContainerRuntimeError", "NebiusBootDiskIOError"), NEBIUS),
    **dict.fromkeys(
        (
            "AMDGPUUnhealthy", "AMDGPUProblem", "AMDGPUHardwareAssertionHwa", "AMDGPUDeviceInternalError", "AMDGPUXgmi",
        ),
        AMD,
    ),
    "XidCriticalError": GKE,
    "EtcdIsVoter": K3S,
    HEALTH: AUTOPILOT,
}  # fmt: skip
BAD_WHEN_FALSE = frozenset({"EtcdIsVoter"})  # in addition to those with a telling name
# About the node, a switch, a network card or a service, not about a GPU.
NOT_OF_A_GPU = frozenset({
    "GpuDcgmConnectivityFailure", "SysLogsSXIDError", "SysLogsNICDriverError", "GpuNvswitchFatalWatch",
    "GpuNvswitchNonfatalWatch", "UnhealthyNvidiaDCGMServices", "UnhealthyNvidiaGridLicenseStatus",
    "UnhealthyNvidiaDevicePlugin",
})  # fmt: skip
LESS_BAD = frozenset({
    "GPUClockThrottling", "UnhealthyNvidiaDCGMServices", "UnhealthyNvidiaGridLicenseStatus",
    "NvidiaPersistencedDown",  # jobs go on, the next one starts slower
})  # fmt: skip
WORST = frozenset({"UnhealthyNvidiaDevicePlugin", "CperHardwareErrorFatal"})  # not of a GPU, and critical
# DCGM and the GPUs are away while a driver is replaced, and detectors report these on a healthy node (Z18).
USUAL_DURING_UPGRADE = frozenset({
    "GpuDcgmConnectivityFailure", "GpuDriverWatch", "GPUMissing", "UnhealthyNvidiaDevicePlugin",
    "UnhealthyNvidiaDCGMServices",
})  # fmt: skip
# Caused by a bad boot: the kubelet started before its container runtime, and restarted repeatedly.
AFTER_A_BOOT = frozenset({"FrequentKubeletRestart", "FrequentContainerdRestart", "ContainerRuntimeUnhealthy"})
NOTICES = frozenset({"scheduled", "deprecated", "planned"})  # words for announcements, which are no faults

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_COMPOUND = re.compile("NVLink|NVSwitch|ReadOnly")
_GOOD = frozenset({"ready", "healthy", "available", "succeeded", "ok", "passed", "alive", "reachable", "connected"})
_READY_FOR = frozenset({"ready", "available"})  # in a sentence: for what?
_BAD = re.compile(
    r"err(or)?s?|fail\w*|fault\w*|fatal|problems?|unhealthy|missing|los[ts]|loss|deadlock|hangs?|hung|stuck|corrupt\w*|"
    r"readonly|frequent\w*|restarts?|flap\w*|inactive|throttl\w*|pressure|down|degrad\w*|exhaust\w*|unavailable|"
    r"block\w*|timeouts?|crash\w*|leaks?|panic\w*|oom|shutdown|overheat\w*|exceed\w*|mismatch\w*|disconnect\w*|"
    r"unreachable|invalid|expired|deprecated|suspect\w*|broken|bad|slow\w*|violations?|uncorrect\w*|dropp?\w*|lockup\w*|"
    r"assertions?|issues?|warnings?|alarms?|alerts?|critical|stall\w*|misconfig\w*|conflict\w*|unresponsive|fallen|"
    r"offline|s?xids?|oops|abnormal\w*|insufficient|high|required|needed|pending|scheduled|retired|not|no|un\w+able|zombies?|"
    r"watch|out|fell|dropped|stopped|defect\w*|damaged?|abort\w*|reject\w*|denied|incorrect|unsupported|outdated"
)
_NEGATED = frozenset({"no", "not", "non", "without", "0", "zero"})
LONGEST_MESSAGE = 400  # characters that are read for words
# Words that name a fault in a type, but not in a reason.
_SOFT = frozenset({"high", "required", "needed", "pending", "scheduled", "watch", "out", "retired", "down"})
_OF_A_GPU = re.compile(
    r"(amd)?gpus?|gpuhealth|s?xids?|nvidia\w*|nvlink\w*|nvswitch|dcgmi?|accelerat\w*|cuda|hbm|habana|gaudi|ecc|smi|rocm"
)
# In NVSentinel's format, and in similar ones.
_ACTION = re.compile(r"(?:recommended|suggested)[ _]?action\s*[=:]\s*[\"']?([A-Za-z][A-Za-z0-9_]*)", re.IGNORECASE)
_ITEM = re.compile(r"(?<=[A-Z0-9_]);\s*(?=ErrorCode:|$)")
# "Xid (PCI:0000:3b:00): 79", "XID-48", "NvidiaXID48Error", "XID error-codes found: 48, 56"; not SXid, a switch's.
_IN_THE_LOG = re.compile(r"(?<![A-Za-z])Xid\s*\([^)]*\)\s*:\s*(\d{1,3})\b", re.IGNORECASE)
_XID = re.compile(
    r"(?<!s)xids?(?:[ _-]?errors?)?(?:[ _-]?codes?)?(?: found)?(?:\s*[:=#_-]\s*|\s*)"
    r"(\d{1,3}(?:, *\d{1,3}\b)*)(?!\d|:\d\d:)",  # not the hours of a time
    re.IGNORECASE,
)
_ERROR_CODE = re.compile(r"ErrorCode:(?:XID_)?(\d{1,3})\b")
_IN_JSON = re.compile(r"[{,]\s*\"(\d{1,3})\"\s*:\s*true")
NONE = "NONE"
# Recommendations of NVSentinel that no application's Xid explains. A restart of the machine it recommends for many.
OF_A_VENDOR = frozenset({"CONTACT_SUPPORT", "REPLACE_VM", "RUN_FIELDDIAG", "RUN_DCGMEUD"})
# About an IMEX daemon, which DCGM's NVLink watch also checks; it runs only while a ComputeDomain is active.
IMEX_UNHEALTHY = "DCGM_FR_IMEX_UNHEALTHY"
IMEX_OF_EKS = "DCGMHealthCode122"  # the same by its number (eks-node-monitoring-agent #63)
# About a device file for subnet managers, which some providers omit; RDMA works without it (NVSentinel #1663, #1716).
NO_SUBNET_MANAGER = "issm character device missing"
# Suffix of DCGM for an error that does not hinder work, such as power throttling (NVSentinel #465).
STILL_WORKS = "can still perform workload"
ROW_REMAP = 63
# Errors of NVLink 5 with a text for a continuing link: "145, RLW_RXPIPE Nonfatal XC0 i0 Link 13" (gpud #1174).
NVLINK_5 = range(144, 151)
_NONFATAL = re.compile(r"\bnonfatal\b", re.IGNORECASE)
# NVSentinel's text of a check without a failure. A check that recovered may stay at True (NVSentinel #1438).
NO_FAILURES = "no health failures"
# NVSentinel's code for pods that do not end after their deletion; it asks for a restart of the machine (#1299).
STUCK_PODS = "POD_STUCK_AFTER_DELETION"
# EKS' agent reports this when it loses DCGM's host engine, and keeps it afterwards (eks-node-monitoring-agent #266).
DCGM_LOST = "DCGMError: "


# Links train for a short time after a boot (NVSentinel #1701); boards without a bridge have none (NVSentinel #1481).
_PCI = re.compile(r"\bPCI:((?:[\da-f]{4,8}:)?[\da-f]{2}:[\da-f]{2})", re.IGNORECASE)
LINKS_DOWN = "DCGM_FR_NVLINK_DOWN"
_SAYS_LINKS_DOWN = re.compile(r"NvLink link \d+ is currently down", re.IGNORECASE)  # DCGM's words for that code


def is_without_failure(message: str) -> bool:
    return NO_FAILURES in message.casefold()


def names_stuck_pods(message: str) -> bool:
    return STUCK_PODS in message


def addresses_in(message: str) -> set[str]:
    """Returns the PCI addresses of GPUs that a message names."""
    return set(_PCI.findall(message))


def are_links_down(message: str) -> bool:
    return LINKS_DOWN in message or _SAYS_LINKS_DOWN.search(message) is not None


def is_of_imex(message: str) -> bool:
    return IMEX_UNHEALTHY in message or IMEX_OF_EKS in message


def is_a_fault_report(name: str) -> bool:
    """Tells whether a condition type may report a fault. The kubelet's readiness is excluded; it has its own rules."""
    return name != READY and name not in LIFECYCLE


def is_fault(row: Mapping[str, Any]) -> bool:
    """Tells whether a stored condition is a fault. Rows of an older version contain only faults."""
    return row.get("verdict", ConditionVerdict.WRONG) == ConditionVerdict.WRONG


def whole_condition(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a stored condition with all fields; harmless conditions and older rows omit most of them."""
    if "reporter" in row:
        return dict(row)
    status, message = row.get("status", "True"), row.get("message", "")
    reading = read_condition(row["type"], status, "", message)
    return {
        "type": row["type"],
        "status": status,
        "verdict": row.get("verdict", ConditionVerdict.WRONG.value),
        "reporter": reading.reporter,
        "severity": reading.severity.value if is_fault(row) else "",
        "message": message,
        "recommended_action": reading.action,
        "xids": list(reading.xids),
        "since": row.get("since"),
    }


def is_bad_when_false(name: str) -> bool:
    return name in BAD_WHEN_FALSE or (name not in REPORTERS and _is_named_well(name)) or REPORTERS.get(name) == EKS


def is_of_a_gpu(name: str) -> bool:
    """Tells whether the type is about GPUs, so that a GPU's finding may explain it."""
    return name not in NOT_OF_A_GPU and any(_OF_A_GPU.fullmatch(word) for word in _words_in(name))


def read_condition(name: str, status: str, reason: str = "", message: str = "") -> ConditionReading:
    """Classifies a condition; used by observer, findings, pages and REST."""
    reporter = _reporter_of(name, reason)
    verdict = _verdict(name, status, reporter, reason, message)
    if verdict is not ConditionVerdict.WRONG:
        return ConditionReading(verdict, reporter)
    text = f"{reason}: {message}"
    actions = tuple(dict.fromkeys(match[1].upper() for match in _ACTION.finditer(message)))
    xids = tuple(dict.fromkeys(xids_in(name, text)))
    items = [f"{reason}: {item}" for item in _ITEM.split(message) if item.strip()] or [text]
    severity = min((_severity(name, reporter, item) for item in items), key=list(ConditionSeverity).index)
    if reporter is AUTOPILOT:
        severity = ConditionSeverity.WARNING if status == DOUBTED else ConditionSeverity.CRITICAL
    return ConditionReading(verdict, reporter, severity, ", ".join(actions), xids)


def xids_in(name: str, text: str) -> list[int]:
    """Returns the Xids that a condition names. Bare error codes count only if the condition is about Xids."""
    numbers = [int(match[1]) for match in _IN_THE_LOG.finditer(text)]
    for match in _XID.finditer(text):
        numbers += [int(number) for number in match[1].split(",")]
    if not {"xid", "xids"}.isdisjoint(_words_in(name)):
        numbers += [int(match[1]) for pattern in (_ERROR_CODE, _IN_JSON) for match in pattern.finditer(text)]
    return numbers


def is_applications(xid: int) -> bool:
    """Tells whether an Xid is caused by an application or needs no action, so the hardware is not suspected."""
    known = XIDS.get(xid)
    is_mild = known is not None and known.action in (XidAction.RESTART_APP, XidAction.IGNORE)
    return is_mild and known is not None and not known.outlasts_app and xid != ROW_REMAP


def _is_harmless(name: str, item: str) -> bool:
    """Tells whether a reported fault needs no action, or names only Xids of applications."""
    if xids := xids_in(name, item):
        return all(map(is_applications, xids)) and not _asks_for_a_vendor(item)
    return _asks_for_nothing(item)


def _asks_for_a_vendor(item: str) -> bool:
    return not OF_A_VENDOR.isdisjoint(match[1].upper() for match in _ACTION.finditer(item))


def _is_less_than_its_xids(xids: Sequence[int], item: str) -> bool:
    """Tells whether the reported Xids by themselves ask for no drain now, though their reporter asks for something."""
    is_nonfatal = bool(_NONFATAL.search(item)) and all(xid in NVLINK_5 for xid in xids)
    return bool(xids) and (is_nonfatal or all(is_applications(xid) or xid == ROW_REMAP for xid in xids))


def _asks_for_nothing(item: str) -> bool:
    return {match[1].upper() for match in _ACTION.finditer(item)} == {NONE}


def _reporter_of(name: str, reason: str) -> str:
    if known := REPORTERS.get(name):
        return known
    if reason in (f"{name}IsNotHealthy", f"{name}IsHealthy"):
        return NVSENTINEL
    return next((who for prefix, who in (("Nebius", NEBIUS), ("Gcm", GCM)) if name.startswith(prefix)), UNNAMED)


def _verdict(name: str, status: str, reporter: str, reason: str, message: str) -> ConditionVerdict:
    if is_bad_when_false(name):
        return ConditionVerdict.FINE if status == "True" else ConditionVerdict.WRONG
    if not (name in REPORTERS or reporter is NVSENTINEL or _is_named_badly(name)):
        return _verdict_of_text(reason, message) if status in ("True", "False") else ConditionVerdict.UNKNOWN
    verdicts = {"True": ConditionVerdict.WRONG, "False": ConditionVerdict.FINE}
    if reporter is AUTOPILOT:
        verdicts = {**dict.fromkeys((*FAILED, DOUBTED), ConditionVerdict.WRONG), PASSED: ConditionVerdict.FINE}
    return verdicts.get(status, ConditionVerdict.UNKNOWN)


def _verdict_of_text(reason: str, message: str) -> ConditionVerdict:
    """Returns the verdict of a type whose name does not tell: HasIssues is bad, HasNoIssues is good.

    Where the reason does not tell either, the words of the message do. A message with a negation tells nothing, and
    "ready for repair" is no health.
    """
    words, told = _words_in(reason), _words_in(message[:LONGEST_MESSAGE].replace("/", " "))
    verdict = _verdict_of_words(words)
    if verdict is ConditionVerdict.UNKNOWN and _NEGATED.isdisjoint(told):
        return _verdict_of_words([word for word in told if word not in _READY_FOR])
    return verdict


def _verdict_of_words(words: Sequence[str]) -> ConditionVerdict:
    is_negated = not _NEGATED.isdisjoint(words)
    if any(_BAD.fullmatch(word) for word in words if word not in _NEGATED | _SOFT):
        return ConditionVerdict.FINE if is_negated else ConditionVerdict.WRONG
    if not _GOOD.isdisjoint(words):
        return ConditionVerdict.WRONG if is_negated else ConditionVerdict.FINE
    return ConditionVerdict.UNKNOWN


def _severity(name: str, reporter: str, item: str) -> ConditionSeverity:
    if _is_notice(name) or _is_harmless(name, item) or is_without_failure(item):
        return ConditionSeverity.NOTE
    if is_of_imex(item) or any(text in item for text in (NO_SUBNET_MANAGER, STILL_WORKS, DCGM_LOST, STUCK_PODS)):
        return ConditionSeverity.WARNING
    error = dcgm_error_in(item)
    if _is_less_than_its_xids(xids_in(name, item), item):
        return ConditionSeverity.WARNING
    if _asks_for_nothing(item) or (error and error.severity is DcgmSeverity.MONITOR):
        return ConditionSeverity.WARNING
    line = kernel_line_in(f"{name} {item}")
    if xids_in(name, item) or (line and line.severity == "critical"):
        return ConditionSeverity.CRITICAL
    if line and line.severity and not _ACTION.search(item):
        return ConditionSeverity.WARNING
    if reporter is NVSENTINEL or (is_of_a_gpu(name) and name not in LESS_BAD):
        return ConditionSeverity.CRITICAL
    return ConditionSeverity.CRITICAL if name in WORST else ConditionSeverity.WARNING


def _is_notice(name: str) -> bool:
    return not NOTICES.isdisjoint(_words_in(name))


def _is_named_well(name: str) -> bool:
    """Tells whether a name ends with Ready, Healthy, … and has no negation such as NotReady or Unhealthy."""
    words = _words_in(name)
    return bool(words) and words[-1] in _GOOD and not any(_BAD.fullmatch(word) for word in words)


def _is_named_badly(name: str) -> bool:
    return any(_BAD.fullmatch(word) for word in _words_in(name))


def _words_in(name: str) -> list[str]:
    plain = _COMPOUND.sub(lambda match: match[0].capitalize(), name.rpartition("/")[2])
    return [word.lower() for word in _WORD.findall(plain)]
