"""The conditions of causes that no pattern expresses, by the name that `when` of an entry uses. Pure.

A predicate returns the facts that the texts of its entry may use, or None where the condition does not hold.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gpu import labels as keys
from gpu.compatibility.systems import read_system
from gpu.operands import (
    AMD_CONFIG,
    AMD_PLUGIN,
    COMPUTE_DOMAIN,
    DCGM_EXPORTERS,
    DEVICE_PLUGIN,
    DRA_DRIVER,
    GAUDI_PLUGIN,
    GFD,
    INTEL_PLUGIN,
    MIG_MANAGER,
    TESTS,
)
from gpu.rejections import ENDED_BY_PROBE
from gpu.resources import is_gpu_resource
from gpu.resources.names import profile_in
from gpu.versions import tag_of
from health.rules.pods_failing import BY_KUBELET
from health.stack.causes.base import CC_STATE, CRASHES, PUBLISHES, VGPU_STATE, Cause, ClaimSigns, PodSigns, Signs
from health.stack.causes.placement import differing, is_selected
from health.stack.causes.tolerations import spell, untolerated_taints
from kube.log_lines import LineWeight, decisive_line, weight
from wording.numbers import either

PLUGINS = frozenset({DEVICE_PLUGIN, AMD_PLUGIN, INTEL_PLUGIN, GAUDI_PLUGIN})
DEVICE_PLUGIN_GATE = f"{keys.DEPLOY_PREFIX}device-plugin"  # also of the MPS control daemon
WORKLOAD = "nvidia.com/gpu.workload.config"  # container, vm-passthrough, vm-vgpu
PAUSED = "paused-for-"  # -driver-upgrade, -mig-change


class PredicateAnswer(NamedTuple):
    facts: Mapping[str, str] = {}
    quote: str = ""  # the line to quote
    lines: Sequence[str] | None = None  # the only lines that patterns are matched with; None: every line of the pod
    steps: Sequence[str] = ()  # replace the steps of the entry


Predicate = Callable[[Signs], PredicateAnswer | None]
PREDICATES: dict[str, tuple[Predicate, frozenset[str]]] = {}
HOLDS = PredicateAnswer()


def predicate(*facts: str) -> Callable[[Predicate], Predicate]:
    """Registers a function under its name, with the facts that it gives."""

    def register(function: Predicate) -> Predicate:
        PREDICATES[function.__name__] = function, frozenset(facts)
        return function

    return register


def _if(holds: object) -> PredicateAnswer | None:
    return HOLDS if holds else None


# Placement: https://github.com/NVIDIA/gpu-operator/blob/main/controllers/state_manager.go


def _is_gated(signs: Signs) -> bool:
    return any(key.startswith(keys.DEPLOY_PREFIX) for key in signs.selector) or not signs.has_daemon_set


def _gate_off(signs: Signs) -> str:
    off = [key for key, value in differing(signs.selector, signs.labels).items() if value == "false"]
    return next((key for key in off if key.startswith(keys.DEPLOY_PREFIX)), "")


@predicate()
def gated_by_label(signs: Signs) -> PredicateAnswer | None:
    return _if(_is_gated(signs))


@predicate()
def plugin_off_beside_dra(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.has_dra and _gate_off(signs) == DEVICE_PLUGIN_GATE)


@predicate("gate")
def turned_off(signs: Signs) -> PredicateAnswer | None:
    gate = _gate_off(signs)
    return PredicateAnswer({"gate": gate}) if gate else None


def _paused(signs: Signs, *, for_driver: bool) -> PredicateAnswer | None:
    stopped = {key: value for key, value in differing(signs.selector, signs.labels).items() if PAUSED in value}
    key, value = next(iter(stopped.items()), ("", ""))
    is_meant = bool(key) and value.endswith(keys.PAUSED) is for_driver
    return PredicateAnswer({"gate": key, "value": value}) if is_meant else None


@predicate("gate", "value")
def paused_for_driver(signs: Signs) -> PredicateAnswer | None:
    return _paused(signs, for_driver=True)


@predicate("gate", "value")
def paused_for_mig(signs: Signs) -> PredicateAnswer | None:
    return _paused(signs, for_driver=False)


@predicate("gate")
def label_empty(signs: Signs) -> PredicateAnswer | None:
    """The label is set to a blank value, which selects no DaemonSet. The MIG manager's is blank without MIG."""
    gates = [key for key in differing(signs.selector, signs.labels) if key.startswith(keys.DEPLOY_PREFIX)]
    gate = next((key for key in gates if signs.labels.get(key) == ""), "")
    return PredicateAnswer({"gate": gate}) if gate and signs.operand != MIG_MANAGER else None


@predicate()
def not_labelled(signs: Signs) -> PredicateAnswer | None:
    has_label = any(key.startswith(keys.DEPLOY_PREFIX) for key in signs.labels)
    return _if(signs.has_operator and _is_gated(signs) and signs.is_gpu_node and not has_label)


@predicate()
def daemon_sets_elsewhere(signs: Signs) -> PredicateAnswer | None:
    return _if(not signs.has_daemon_set and signs.others_have_one)


@predicate()
def driver_asked_for(signs: Signs) -> PredicateAnswer | None:
    has_none = not signs.has_daemon_set and not signs.others_have_one
    return _if(has_none and signs.driver_asked_by and signs.is_gpu_node)


@predicate()
def driver_of_host(signs: Signs) -> PredicateAnswer | None:
    has_none = not signs.has_daemon_set and not signs.others_have_one
    return _if(has_none and signs.is_gpu_node and (signs.runs_version or signs.is_driver_off))


@predicate("workload")
def for_machines(signs: Signs) -> PredicateAnswer | None:
    workload = signs.labels.get(WORKLOAD, "")
    return PredicateAnswer({"workload": workload}) if workload.startswith("vm-") else None


@predicate()
def plugin_elsewhere(signs: Signs) -> PredicateAnswer | None:
    is_unserved = signs.is_gpu_node and not signs.gpus_allocatable and not for_machines(signs)
    return _if(not signs.has_daemon_set and signs.others_have_one and is_unserved)


@predicate()
def pods_unseen(signs: Signs) -> PredicateAnswer | None:
    return _if(not signs.sees_pods and is_selected(signs))


@predicate("noun", "taints")
def tainted(signs: Signs) -> PredicateAnswer | None:
    away = untolerated_taints(signs.taints, signs.tolerations) if is_selected(signs) else []
    noun = either(len(away), "taint", "taints")
    return PredicateAnswer({"noun": noun, "taints": ", ".join(spell(taint) for taint in away)}) if away else None


@predicate()
def pods_refused(signs: Signs) -> PredicateAnswer | None:
    """The DaemonSet controller is refused: a quota, an admission policy, a missing RuntimeClass."""
    refused = [event.message for event in signs.daemon_set_events if event.reason == "FailedCreate"]
    return PredicateAnswer(lines=refused[:1]) if refused and is_selected(signs) else None


@predicate()
def other_pod_unscheduled(signs: Signs) -> PredicateAnswer | None:
    return PredicateAnswer(quote=signs.unscheduled) if signs.unscheduled and is_selected(signs) else None


@predicate()
def selected(signs: Signs) -> PredicateAnswer | None:
    return _if(is_selected(signs))


# Waiting


@predicate()
def node_silent(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.is_node_ready is None)


@predicate()
def node_not_ready(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.is_node_ready is False)


@predicate()
def misscheduled(signs: Signs) -> PredicateAnswer | None:
    """The label of a ComputeDomain's DaemonSet changes with the workload: the pod's own lines count there."""
    return _if(signs.pod and signs.has_daemon_set and signs.operand != COMPUTE_DOMAIN and not is_selected(signs))


def _lower(title: str) -> str:
    first, _, rest = title.partition(" ")
    return title if first.isupper() else f"{first.lower()} {rest}".rstrip()


@predicate("operand", "more")
def waits_for_others(signs: Signs) -> PredicateAnswer | None:
    """The init containers wait for operands that are not ready on this node."""
    if signs.pod is None or not signs.not_ready or not signs.pod.is_starting:
        return None
    first, *rest = map(_lower, signs.not_ready)
    more = f"Then it waits for the {' and the '.join(rest)}." if rest else "It starts once that operand is ready."
    return PredicateAnswer({"operand": first, "more": more})


@predicate()
def held_by_validator(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.is_held_by_validator)


# Operands


@predicate()
def mig_failed(signs: Signs) -> PredicateAnswer | None:
    """Every change of a layout begins with a failed assertion, which is no reason."""
    pod = signs.pod
    if signs.operand != MIG_MANAGER or signs.mig_state != "failed" or (pod and pod.has_no_log):
        return None
    lines = [line for line in pod.log if "selected configuration not currently" not in line.lower()] if pod else []
    return PredicateAnswer(quote=decisive_line(lines) or (pod.last_words if pod else ""))


@predicate()
def cc_failed(signs: Signs) -> PredicateAnswer | None:
    has_run = signs.pod is None or not signs.pod.has_no_log
    return _if(signs.operand == "cc-manager" and signs.labels.get(CC_STATE) == "failed" and has_run)


@predicate()
def amd_profile_failed(signs: Signs) -> PredicateAnswer | None:
    if signs.operand != AMD_CONFIG or signs.labels.get(keys.AMD_PROFILE_STATE) != keys.AMD_PROFILE_FAILED:
        return None
    words = signs.pod.decisive_line if signs.pod else ""
    return PredicateAnswer({}, words)


@predicate()
def vgpu_failed(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.operand == "vgpu-device-manager" and signs.labels.get(VGPU_STATE) == "failed")


@predicate()
def offers_no_more(signs: Signs) -> PredicateAnswer | None:
    return _if(_offers_nothing(signs) and signs.gpus_expected)


@predicate()
def offers_no_gpu(signs: Signs) -> PredicateAnswer | None:
    return offers_no_more(signs) or never_offered(signs)


@predicate()
def never_offered(signs: Signs) -> PredicateAnswer | None:
    """Returns whether the plugin offered nothing.

    Without FAIL_ON_INIT_ERROR it stays Ready without a driver (k8s-device-plugin #1220).
    """
    is_for_it = signs.is_gpu_node if signs.operand == DEVICE_PLUGIN else signs.is_of_vendor
    return _if(_offers_nothing(signs) and not signs.gpus_expected and signs.pod and signs.pod.is_overdue and is_for_it)


@predicate()
def labels_nothing(signs: Signs) -> PredicateAnswer | None:
    """Feature discovery stays ready where it finds no driver (gpu-feature-discovery #36)."""
    is_late = signs.operand == GFD and signs.is_gpu_node and signs.pod is not None and signs.pod.is_overdue
    return _if(is_late and keys.GPU_PRODUCT not in signs.labels)


def _offers_nothing(signs: Signs) -> bool:
    is_ready = signs.pod is not None and signs.pod.is_ready
    return signs.operand in PLUGINS and is_ready and not signs.gpus_allocatable


@predicate()
def no_resource_slice(signs: Signs) -> PredicateAnswer | None:
    """NVIDIA's driver may run for ComputeDomains only and then publishes no GPU."""
    is_late = signs.pod is not None and signs.pod.is_overdue
    return _if(signs.slice_devices is None and signs.operand != DRA_DRIVER and is_late and signs.sees_slices)


@predicate()
def empty_resource_slice(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.slice_devices == 0)


@predicate()
def publishes_no_device(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.pod is not None and signs.operand in PUBLISHES and not signs.slice_devices)


ENGINE = re.compile(r"connect to remote hostengine at (?P<at>[^\s\"]+)", re.IGNORECASE)
ENGINE_ANSWERED = re.compile("dcgm successfully initialized|initialized dcgm fields", re.IGNORECASE)
ENGINE_REFUSED = re.compile(
    "connecting to nv-hostengine|failed to connect to remote hostengine|host ?engine connection (invalid|lost)|"
    r"connection to (the )?(remote |nv-)?host ?engine.{0,40}(lost|invalid|refused|fail|closed)|"
    "unable to establish a connection to the specified host|DCGM_ST_CONNECTION_NOT_VALID",
    re.IGNORECASE,
)


@predicate("at")
def no_host_engine(signs: Signs) -> PredicateAnswer | None:
    """A refusal counts only after the last answer. An exporter may also end with a bare stack (dcgm-exporter #536)."""
    pod = signs.pod
    if pod is None or signs.operand not in DCGM_EXPORTERS:
        return None
    answered = max((at for at, line in enumerate(pod.log) if ENGINE_ANSWERED.search(line)), default=-1)
    refusals = [line for line in pod.log[answered + 1 :] if ENGINE_REFUSED.search(line)]
    ended = next((line for line in (pod.last_words, pod.message) if ENGINE_REFUSED.search(line)), "")
    said = decisive_line(refusals) or ended
    asked = next((found for line in reversed(pod.log) if (found := ENGINE.search(line))), None)
    if not said and not (asked and answered < 0 and pod.reason in CRASHES):
        return None
    return PredicateAnswer({"at": f" at {asked['at']}" if asked else ""}, said.strip() or pod.decisive_line)


HOST_DRIVER = re.compile(r"no pre-installed driver detected on the host", re.IGNORECASE)


@predicate()
def driver_is_hosts(signs: Signs) -> PredicateAnswer | None:
    said = next((line for line in signs.all_lines() if HOST_DRIVER.search(line)), "")
    return PredicateAnswer(quote=said.strip()) if signs.has_host_driver else None


IMAGE_SYSTEM = re.compile(r"(?P<name>ubuntu|rhel|rocky|sles)(?P<version>\d+(?:\.\d+)?)$")
OF_RED_HAT = frozenset({"rhel", "rocky"})  # images for RHEL run on Rocky Linux
SYSTEM_NAMES = {"ubuntu": "Ubuntu", "rhel": "RHEL", "rocky": "Rocky Linux", "sles": "SLES"}


@predicate("image_system")
def driver_of_other_system(signs: Signs) -> PredicateAnswer | None:
    """The tag of the driver's image ends with another system than the node's, as far as both are known."""
    found, node = IMAGE_SYSTEM.search(tag_of(signs.pod.image)) if signs.pod else None, read_system(signs.os_image)
    if found is None or node.name not in SYSTEM_NAMES or not node.version:
        return None
    if {found["name"], node.name} <= OF_RED_HAT:
        is_same = found["version"].partition(".")[0] == node.version.partition(".")[0]
    elif found["name"] == "ubuntu":
        is_same = node.name == "ubuntu" and node.version == found["version"]
    else:
        is_same = found["name"] == node.name
    named = f"{SYSTEM_NAMES[found['name']]} {found['version']}"
    return None if is_same else PredicateAnswer({"image_system": named})


SMI_EXIT = re.compile(
    r"(?:driver detected on the host|validat\w+ .{0,40}driver.{0,60}|nvidia-smi.{0,60}|command failed.{0,40}): "
    r".{0,60}exit status (?P<code>\d+)\b",
    re.IGNORECASE,
)
_IS_PRESENT = "The driver itself is present."
SMI_CODES = {  # nvidia-smi(1), RETURN VALUE; 9 and 255 are read with the other lines of a log
    "8": (f"A power cable of a GPU is missing. {_IS_PRESENT}", ("Check the power cables of the board.",)),
    "10": (
        f"The kernel reports an error with the interrupts of a GPU. {_IS_PRESENT}",
        ("Check the kernel log for NVRM lines.", "Drain the node and reboot it."),
    ),
    "12": (
        "The container has no library of the driver (libnvidia-ml.so).",
        ("Check that the node has a driver.", "Check that the pod runs with NVIDIA's runtime (runtimeClassName)."),
    ),
    "13": (
        "The driver is older than the nvidia-smi that runs.",
        ("Take nvidia-smi from the driver of the node, or install a newer driver.",),
    ),
    "14": (
        f"The infoROM of a GPU is corrupted. {_IS_PRESENT}",
        (
            "Run nvidia-smi on the node: a warning names the GPU. Reset that GPU or reboot the node.",
            "If the warning stays, ask the vendor to repair the infoROM or replace the board.",
        ),
    ),
    "15": (
        f"A GPU fell off the bus. {_IS_PRESENT}",
        ("Check the kernel log for Xid 79.", "Drain the node and reboot it."),
    ),
}


@predicate("code", "meaning")
def smi_exit(signs: Signs) -> PredicateAnswer | None:
    found = next((match for line in signs.all_lines() if (match := SMI_EXIT.search(line))), None)
    if found is None or found["code"] not in SMI_CODES:
        return None
    meaning, steps = SMI_CODES[found["code"]]
    return PredicateAnswer({"code": found["code"], "meaning": meaning}, found.string.strip(), steps=steps)


@predicate()
def waits_for_driver_container(signs: Signs) -> PredicateAnswer | None:
    return _if(any(".driver-ctr-ready" in line for line in signs.all_lines()))


@predicate()
def not_a_test(signs: Signs) -> PredicateAnswer | None:
    """The container of a test pod has the name of the step that waits for it."""
    return _if(signs.operand not in TESTS)


@predicate()
def validation_stuck(signs: Signs) -> PredicateAnswer | None:
    pod = signs.pod
    return _if(pod and signs.operand not in TESTS and (pod.is_overdue or pod.reason))


@predicate()
def validation_of_host_driver(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.has_host_driver and validation_stuck(signs))


# Crashes


BY_ITSELF = re.compile(
    r"\bpanic: |^sig(segv|bus|abrt|ill)\b|segmentation (fault|violation)|^fatal error: |^fatal: morestack|"
    r"^\s*what\(\):\s+(basic_string|std::|vector|map::at|bad_)",
    re.IGNORECASE,
)


@predicate()
def container_not_made(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.pod and signs.pod.reason in ("CreateContainerConfigError", "CreateContainerError"))


@predicate()
def no_worded_line(signs: Signs) -> PredicateAnswer | None:
    """The log has no error that explains the end."""
    return _if(signs.pod and weight(signs.pod.decisive_line or " ") < LineWeight.WORDED)


@predicate()
def without_log(signs: Signs) -> PredicateAnswer | None:
    """A container with a log has run: an Event about its creation is over."""
    return _if(signs.pod and not signs.pod.log)


@predicate("probe")
def killed_by_probe(signs: Signs) -> PredicateAnswer | None:
    """The kubelet ends a container whose liveness or startup probe fails: its log then names no error."""
    pod = signs.pod
    if pod is None or pod.reason not in CRASHES or weight(pod.decisive_line or " ") >= LineWeight.ERROR:
        return None
    failing = ("Liveness probe failed", "Startup probe failed")
    said = next((event.message for event in pod.events if event.message.startswith(failing)), "")
    return PredicateAnswer({"probe": said.split()[0].lower()}, said) if said else None


@predicate("probe")
def ended_by_probe(signs: Signs) -> PredicateAnswer | None:
    """The kubelet's Event says that it ended the container for a probe, and the program's last line is no error."""
    pod = signs.pod
    if pod is None or pod.is_ready or not (pod.reason in CRASHES or pod.restarts):
        return None
    ended = next((match for event in pod.events if (match := ENDED_BY_PROBE.match(event.message))), None)
    if ended is None or _is_out_of_memory(pod) or weight(pod.decisive_line or " ") >= LineWeight.WORDED:
        return None
    probe = ended["probe"]
    failed = (event.message for event in pod.events if event.message.lower().startswith(f"{probe} probe failed"))
    return PredicateAnswer({"probe": probe}, next(failed, ended.string))


@predicate()
def out_of_memory(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.pod and _is_out_of_memory(signs.pod))


def _is_out_of_memory(pod: PodSigns) -> bool:
    return "OOMKilled" in (pod.reason, pod.last_words.partition(":")[0]) or "OOMKilled" in pod.message


def _crashed(signs: Signs) -> PodSigns | None:
    return signs.pod if signs.pod and signs.pod.reason in CRASHES else None


@predicate()
def crashed(signs: Signs) -> PredicateAnswer | None:
    return _if(_crashed(signs))


@predicate()
def crashed_before_start(signs: Signs) -> PredicateAnswer | None:
    pod = _crashed(signs)
    return _if(pod and pod.has_no_log)


@predicate()
def crashed_without_line(signs: Signs) -> PredicateAnswer | None:
    pod = _crashed(signs)
    return _if(pod and not pod.decisive_line)


@predicate()
def crashed_by_itself(signs: Signs) -> PredicateAnswer | None:
    pod = _crashed(signs)
    return _if(pod and BY_ITSELF.search(pod.decisive_line))


@predicate()
def crashed_without_error(signs: Signs) -> PredicateAnswer | None:
    pod = _crashed(signs)
    return _if(pod and weight(pod.decisive_line) <= LineWeight.PLAIN)


@predicate()
def tenant_crashed_before_start(signs: Signs) -> PredicateAnswer | None:
    pod = signs.pod
    return _if(pod and pod.has_no_log and (pod.reason in CRASHES or pod.reason == "OOMKilled"))


@predicate()
def never_ran(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.pod and signs.pod.has_no_log)


@predicate()
def stuck(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.pod and (signs.pod.reason or signs.pod.message))


@predicate()
def in_container(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.pod and signs.pod.container)


@predicate("event")
def warned_by_event(signs: Signs) -> PredicateAnswer | None:
    event = signs.pod.event if signs.pod else None
    return PredicateAnswer({"event": event.reason}, event.message) if event else None


@predicate("refused")
def fits_nowhere(signs: Signs) -> PredicateAnswer | None:
    """The scheduler counts the nodes that refuse the pod. What it says of preemption would hide the counts."""
    words = signs.pod.event.message if signs.pod and signs.pod.event else ""
    counted = words.partition(" preemption: ")[0].rstrip(". ")
    return PredicateAnswer({"refused": counted}, words) if " nodes are available: " in counted else None


@predicate()
def unhealthy(signs: Signs) -> PredicateAnswer | None:
    return PredicateAnswer(quote=signs.pod.unhealthy) if signs.pod and signs.pod.unhealthy else None


@predicate()
def not_ready(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.pod and not signs.pod.is_ready)


# Tenants' pods


@predicate()
def vgpu_guest(signs: Signs) -> PredicateAnswer | None:
    """The node's GPUs are vGPUs, by the labels of GPU feature discovery."""
    product = signs.labels.get(keys.GPU_PRODUCT, "").lower()
    return _if(
        signs.labels.get("nvidia.com/vgpu.present") == "true" or "vgpu" in product or product.startswith("grid-")
    )


@predicate()
def other_vendor(signs: Signs) -> PredicateAnswer | None:
    return _if(signs.is_of_vendor)


TAKEN = re.compile(
    r"enough resource: (?P<resource>[\w.-]+/[\w.-]+), requested: (?P<asks>\d+), used: (?P<used>\d+), "
    r"capacity: (?P<has>\d+)",
    re.IGNORECASE,
)


@predicate("resource", "asks", "used", "has")
def gpus_all_held(signs: Signs) -> PredicateAnswer | None:
    """The kubelet counts when a pod arrives: the use of GPUs may have changed since the scheduler counted."""
    said = next((found for line in signs.all_lines() if (found := TAKEN.search(line))), None)
    return (
        PredicateAnswer(said.groupdict(), said.string.strip()) if said and is_gpu_resource(said["resource"]) else None
    )


@predicate("resource", "asks", "used", "has")
def node_offered_fewer(signs: Signs) -> PredicateAnswer | None:
    found = gpus_all_held(signs)
    return found if found and int(found.facts["has"]) < int(found.facts["asks"]) else None


@predicate()
def was_refused(signs: Signs) -> PredicateAnswer | None:
    """The kubelet quotes a device plugin. The same words in a program's log are about its own container."""
    return _if(any("llocate" in line or "rpc " in line or "rejected" in line for line in signs.all_lines()))


@predicate("refused")
def refused_by_kubelet(signs: Signs) -> PredicateAnswer | None:
    said = ": ".join(part for part in (signs.pod.reason, signs.pod.message) if part) if signs.pod else ""
    steps = next((steps for reason, steps in BY_KUBELET.items() if said.startswith(reason)), ())
    return PredicateAnswer({"refused": said.partition(":")[0]}, said, steps=steps) if steps else None


def _steps_of(behind: Cause, whose: str) -> tuple[str, ...]:
    first, *rest = behind.steps or ("",)
    return (f"For the pod of {whose}: {first[:1].lower()}{first[1:]}", *rest) if first else ()


@predicate("behind")
def daemon_has_cause(signs: Signs) -> PredicateAnswer | None:
    behind = signs.behind
    if behind is None:
        return None
    return PredicateAnswer({"behind": behind.sentence}, behind.quote, steps=_steps_of(behind, "its daemon"))


CLAIMS = re.compile(r"cannot allocate all claims|resource ?claim|device class|dynamicresources", re.IGNORECASE)


def _waiting_claim(signs: Signs) -> ClaimSigns | None:
    """The first claim of an unplaced pod that has no device yet."""
    if signs.pod is None or signs.is_placed or (signs.pod.message and not CLAIMS.search(signs.pod.message)):
        return None
    return next((claim for claim in signs.claims if not claim.is_allocated), None)


@predicate("claim", "driver")
def claim_waits(signs: Signs) -> PredicateAnswer | None:
    claim = _waiting_claim(signs)
    return PredicateAnswer({"claim": claim.name, "driver": claim.driver or "its class"}) if claim else None


@predicate("claim", "driver")
def claim_unpublished(signs: Signs) -> PredicateAnswer | None:
    claim = _waiting_claim(signs)
    return claim_waits(signs) if claim and claim.driver and not claim.is_published else None


@predicate("claim", "driver", "behind")
def claim_driver_has_cause(signs: Signs) -> PredicateAnswer | None:
    found, behind = claim_unpublished(signs), signs.behind
    if not found or not behind or not signs.pod:
        return None
    facts = {**found.facts, "behind": behind.sentence}
    return PredicateAnswer(facts, behind.quote or signs.pod.message, steps=_steps_of(behind, "the DRA driver"))


# FitError of Kubernetes counts each node once, by its first rejection (pkg/scheduler/framework/types.go). Taints of
# node.kubernetes.io are temporary.
ALL_NODES = re.compile(r"0/(?P<all>\d+) nodes are available: (?P<reasons>.*?)(?:\. preemption:|$)", re.DOTALL)
FOR_GOOD = re.compile(
    r"(?P<nodes>\d+) node\(s\) (?:didn't match pod's node affinity|"
    r"had untolerated taint \{(?!node\.kubernetes\.io/))",
    re.IGNORECASE,
)
MOST_STEPS = 3
SCALES_UP = "TriggeredScaleUp"  # an Event of the cluster autoscaler
SELECTED = r"didn't match pod's node affinity|node\(s\) didn't match .*selector"
# Reasons why nodes were rejected, and the recommended action.
REJECTIONS = tuple(
    (re.compile(pattern, re.IGNORECASE), words, step)
    for pattern, words, step in (
        (r"insufficient (?P<what>cpu|memory|ephemeral-storage|hugepages[\w-]*|pods)",
         "too little {what}", "Ask for less {what} in the pod template, or add nodes. Its GPUs may be free."),
        (r"too many pods(?P<what>)", "too many pods", "Raise maxPods of the kubelet, or add nodes."),
        (r"(?:untolerated taint|had taint) \{(?P<what>[^}]{1,80})\}",
         "the taint {what}", "Add a toleration for {what} to the pod, or remove the taint."),
        (rf"(?P<what>)(?:{SELECTED})",
         "node selector or affinity", "Compare selector and affinity of the pod with the labels of the nodes."),
        (r"insufficient (?P<what>[a-z0-9.-]+/[\w.-]+)",
         "too little {what}", "Wait until pods with {what} end, or check that the nodes offer it."),
        (r"(?P<what>)(?:persistent ?volume|volume node affinity|max volume count|available disk)",
         "a volume", "Check zone and access mode of the pod's volumes, and that their claims are bound."),
        (r"(?P<what>)node\(s\) were unschedulable",
         "cordoned nodes", "Check why the nodes are cordoned. Uncordon those that are well."),
        (r"(?P<what>)(?:topology spread|anti-affinity|match pod (?:\(anti-\))?affinity)",
         "the placement of its other pods", "Check topologySpreadConstraints and podAntiAffinity of the pod."),
        (r"(?P<what>)free ports", "a port in use", "Remove hostPort or hostNetwork, or use one pod per node."),
    )
)  # fmt: skip


@predicate()
def matches_no_node(signs: Signs) -> PredicateAnswer | None:
    """The scheduler counted every node as rejected for good."""
    pod = signs.pod
    if pod is None or signs.is_placed or not re.search(SELECTED, pod.message, re.IGNORECASE):
        return None
    counted = ALL_NODES.search(pod.message)
    if counted is None or any(event.reason == SCALES_UP for event in pod.events):
        return None
    rejected = sum(int(found["nodes"]) for found in FOR_GOOD.finditer(counted["reasons"]))
    return _if(rejected >= int(counted["all"]))


@predicate("scheduler")
def fits_no_node(signs: Signs) -> PredicateAnswer | None:
    message = signs.pod.message if signs.pod else ""
    found = {
        words.format(what=match["what"].rstrip(": .")): step.format(what=match["what"].rstrip(": ."))
        for pattern, words, step in REJECTIONS
        if (match := pattern.search(message))
    }
    names = f"The scheduler names {', '.join(found)}." if found else "The scheduler names no known reason."
    steps = tuple(found.values())[:MOST_STEPS]
    return None if signs.is_placed else PredicateAnswer({"scheduler": names}, steps=steps)


ROOM = ("asked", "free", "most", "largest", "room_node")


def _short_of_room(signs: Signs) -> PredicateAnswer | None:
    """The free room, where no single node has enough of it for the pod."""
    room = signs.room
    if signs.pod is None or room is None or signs.is_placed or room.most >= room.asks:
        return None
    node = room.node or "the node with the most free"
    texts = (room.spell(room.asks), room.spell(room.free), room.spell(room.most), str(room.largest), node)
    return PredicateAnswer(dict(zip(ROOM, texts, strict=True)))


@predicate(*ROOM)
def offered_by_no_node(signs: Signs) -> PredicateAnswer | None:
    return _short_of_room(signs) if signs.room and not signs.room.largest else None


@predicate(*ROOM)
def offered_as_no_slice(signs: Signs) -> PredicateAnswer | None:
    return offered_by_no_node(signs) if signs.room and profile_in(signs.room.noun) else None


@predicate(*ROOM)
def larger_than_any_node(signs: Signs) -> PredicateAnswer | None:
    return _short_of_room(signs) if signs.room and signs.room.largest < signs.room.asks else None


@predicate(*ROOM)
def no_room(signs: Signs) -> PredicateAnswer | None:
    return _short_of_room(signs) if signs.room and signs.room.free < signs.room.asks else None


@predicate(*ROOM)
def fragmented(signs: Signs) -> PredicateAnswer | None:
    return _short_of_room(signs)
