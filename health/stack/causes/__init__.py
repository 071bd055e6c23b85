"""The causes why an operand or a tenant's pod does not run; the first rule that matches wins. Pure.

The causes are entries in `data/*.toml`. This module defines the order of their tables.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from gpu.operands import DRIVER
from health.stack.causes.base import Cause, CauseRule, ClaimSigns, Event, FreeRoom, PodSigns, Signs, Weight
from health.stack.causes.entries import entries, entry, table
from health.stack.causes.images import image_pull
from health.stack.causes.predicates import PREDICATES
from health.stack.causes.unknown import kind_of_line

__all__ = [
    "NOT_READY",
    "USELESS",
    "WHEN_READY",
    "WITHOUT_POD",
    "Cause",
    "ClaimSigns",
    "Event",
    "FreeRoom",
    "PodSigns",
    "Signs",
    "Weight",
    "cause_in_log",
    "cause_in_words",
    "cause_of",
    "waiting_rule",
    "why_waits",
]


USELESS = "The pod is ready, but a finding of the node says that its work is missing."


def _if(condition: str, *tables: str, begins: str = "") -> CauseRule:
    """The first cause of some tables, where a predicate holds. Its summary begins with the given sentence."""
    find, rules = PREDICATES[condition][0], table(*tables)

    def rule(signs: Signs) -> Cause | None:
        cause = _first(rules, signs) if find(signs) is not None else None
        return replace(cause, summary=f"{begins} {cause.summary}") if cause and begins else cause

    return rule


def _first(rules: Iterable[CauseRule], signs: Signs) -> Cause | None:
    return next((cause for rule in rules if (cause := rule(signs))), None)


CONFIGURATION: tuple[CauseRule, ...] = (
    _if("container_not_made", "configuration.known", "runtime.first", "operands.hook", "runtime.rule", "runtime.pod"),
    *table("configuration.not_made"),
)
MIG_FAILED: tuple[CauseRule, ...] = (
    _if("mig_failed", "mig.rule", "operands.rule", "cluster.rule", "cluster.last"), *table("mig.state"),
)  # fmt: skip
AMD_PROFILE: tuple[CauseRule, ...] = (_if("amd_profile_failed", "vendors.rule"), *table("vendors.state"))
CC_STATE: tuple[CauseRule, ...] = (_if("cc_failed", "confidential.rule"), *table("confidential.state"))

# A ready driver writes the errors that its installer survived: only these take its GPUs away.
OF_A_READY_DRIVER: tuple[CauseRule, ...] = tuple(
    rule
    for key in (
        "fabric_version", "fabric_no_switch", "fabric_config", "fabric_module", "fabric_no_start", "gpu_not_supported",
        "gpu_unknown_to_driver", "gpu_no_bar", "gpu_off_bus", "gpu_not_started", "gsp_firmware",
    )
    for rule in entries(key)
)  # fmt: skip
OF_A_READY_OPERAND: tuple[CauseRule, ...] = (
    *table("ready.rule", "runtime.first", "dcgm.rule", "dcgm.last"),
    *(entry(key) for key in ("started_before_driver", "no_nvml", "devices_taken", "too_old_for_health")),
)


def _when_useless(signs: Signs) -> Cause | None:
    """The cause why a ready operand does not do its work, by a log that was read for that."""
    if signs.pod is None or not signs.pod.is_log_of_ready:
        return None
    cause = _first(OF_A_READY_DRIVER if signs.operand == DRIVER else OF_A_READY_OPERAND, signs)
    return replace(cause, summary=f"{USELESS} {cause.summary}") if cause else None


WITHOUT_POD: tuple[CauseRule, ...] = table("placement.without_pod", "missing.rule")
WHEN_READY: tuple[CauseRule, ...] = (
    _if(
        "offers_no_gpu",
        "runtime.first",
        "device_plugin.rule",
        "operands.rule",
        "vendors.rule",
        begins="The pod is ready, but the node offers no GPU.",
    ),
    _when_useless,
    *table("device_plugin.lost", "device_plugin.never", "device_plugin.unlabelled"),
    *MIG_FAILED,
    *table("mig.changing"),
    *CC_STATE,
    *AMD_PROFILE,
    _if("vgpu_failed", "sandbox.vgpu"),
    *table("sandbox.state"),
    _if("publishes_no_device", "dra.refused"),
    *table("dra.state"),
)
# A missing image or a container that cannot be created is the pod's own trouble. The wait for another operand comes
# next, then the pod's own lines, and the general last.
NOT_READY: tuple[CauseRule, ...] = (
    *table("waiting.first"),
    image_pull,
    *CONFIGURATION,
    *table("waiting.then", "driver.rule", "mig.rule", "dra.rule", "dra.refused", "dra.imex", "confidential.rule"),
    *table("sandbox.rule", "sandbox.vgpu", "vendors.rule", "runtime.first", "operands.hook"),
    *table("dcgm.rule", "device_plugin.rule"),
    entry("other_libc"),
    *table("kubelet.container", "kubelet.network", "runtime.rule", "kubelet.volume", "runtime.pod"),
    *table("dcgm.last", "cuda.rule"),
    # before entries that take a missing answer for a refusal
    entry("certificate"),
    entry("api_unreachable"),
    *table("operands.rule", "validator.rule", "validator.step", "cluster.rule"),
    *table("crash.before", "runtime.ended", "runtime.last", "cluster.last", "operands.general"),
    # a state that failed tells more than the kind of an error, and a crash more than a change that goes on
    *CC_STATE,
    *MIG_FAILED,
    *AMD_PROFILE,
    kind_of_line,
    *table("crash.rule", "mig.changing", "waiting.last", "crash.ended", "crash.last"),
)

TENANTS_FIRST: tuple[CauseRule, ...] = (
    *table("tenants.first"), entry("leaving"), entry("node_silent"), *table("tenants.gated"), image_pull,
    *table("tenants.probe"),
)  # fmt: skip
BEFORE_THE_PROGRAM: tuple[CauseRule, ...] = (
    entry("gpu_lost"),
    *table("kubelet.refused", "tenants.kubelet", "tenants.cdi", "tenants.dra", "tenants.device", "tenants.volume"),
    *table("runtime.first", "operands.hook", "runtime.rule", "configuration.known"),
    entry("devices_taken"),
)
AFTER_THE_PROGRAM: tuple[CauseRule, ...] = (
    entry("other_libc"),
    entry("other_machine"),
    entry("container_toolkit"),
    entry("sandbox"),
    entry("container_not_created"),
    entry("disk_full"),
)
OF_A_PROGRAM = table("accelerators.program", "programs.rule", "tenants.program")
GENERAL: tuple[CauseRule, ...] = (*table("programs.general", "tenants.general"), kind_of_line, *table("tenants.error"))
# causes that are tried before messages of a parent process about its child
OF_A_WORKER = GENERAL[: GENERAL.index(entry("engine_failed"))]
BESIDE_THE_PROGRAM: tuple[CauseRule, ...] = (*table("tenants.memory"), *AFTER_THE_PROGRAM)
# The lines are Events, or of a scheduler, or of a runtime that started no program.
OF_NO_PROGRAM: tuple[CauseRule, ...] = (
    *table("kubelet.refused", "tenants.kubelet", "tenants.cdi", "tenants.dra", "tenants.device"),
    *table(
        "kubelet.volume", "tenants.volume", "runtime.first", "operands.hook", "kubelet.container", "kubelet.network"
    ),
    *BEFORE_THE_PROGRAM,
    *table("tenants.scheduler"),
    *AFTER_THE_PROGRAM,
)
GENERAL_OF_A_QUEUE = frozenset({"queue_missing", "queue_quota", "scheduler_no_room"})  # the queue's place tells more
OF_A_QUEUE = tuple(rule for rule in table("tenants.scheduler") if rule.entry.key not in GENERAL_OF_A_QUEUE)
LAST = table("tenants.last")
ENDS = LAST.index(entry("not_started"))  # those before it are about a container that ended
TENANTS_LAST: tuple[CauseRule, ...] = (
    *CONFIGURATION, *LAST[:ENDS], *table("events.reason"), entry("tenant_not_ready"), *table("events.past"),
    *LAST[ENDS:], *table("crash.ended", "tenants.unready"),
)  # fmt: skip


def cause_of(signs: Signs) -> Cause | None:
    """The cause for an operand on a node. None: it is ready, or no pod is wanted here."""
    if signs.pod is None:
        rules = WITHOUT_POD
    elif signs.pod.is_ready and not signs.pod.is_leaving:
        rules = WHEN_READY
    else:
        rules = NOT_READY
    return _first(rules, signs)


def cause_in_words(words: str) -> Cause | None:
    """Returns the cause that a queue or a scheduler names. None: it names none, or only that there is no room."""
    pod = PodSigns("", phase="Pending", message=words)
    return _first(OF_A_QUEUE, Signs("", "", "", {}, is_gpu_node=False, is_placed=False, pod=pod))


def why_waits(signs: Signs) -> Cause | None:
    """The cause for a tenant's pod. None: nothing shows a trouble."""
    rule = waiting_rule(signs)
    return rule(signs) if rule else None


def cause_in_log(signs: Signs) -> Cause | None:
    """Returns the cause that lines of a program's log name. General kinds of errors are none: it may have gone on."""
    return _first((*OF_A_PROGRAM, entry("devices_taken"), entry("library_mismatch")), _of_the_program(signs))


def waiting_rule(signs: Signs) -> CauseRule | None:
    """Returns the rule that finds the cause for a tenant's pod. Pods that differ in their names have the same.

    The pod's own lines come before Events, which may be about something that is over. A further line that has a known
    cause comes before a general cause of the last line, which is often a consequence.
    """
    if signs.pod is None:
        return None
    is_of_program = signs.is_placed and not signs.pod.has_no_log
    turns: tuple[tuple[Iterable[CauseRule], Callable[[Signs], Signs]], ...] = (
        (TENANTS_FIRST, _with_all),
        (BEFORE_THE_PROGRAM if is_of_program else OF_NO_PROGRAM, _without_events),
        (OF_A_PROGRAM if is_of_program else (), _of_the_program),
        (BESIDE_THE_PROGRAM if is_of_program else (), _without_events),
        ((*OF_A_PROGRAM, entry("devices_taken")) if is_of_program else (), _with_more_words),
        (OF_A_WORKER if is_of_program else (), _without_events),
        (OF_A_WORKER if is_of_program else (), _with_more_words),
        (GENERAL if is_of_program else OF_NO_PROGRAM, _without_events),
        (OF_NO_PROGRAM, _with_all),
        (table("kubelet.placing", "tenants.placing"), _with_all),
        (TENANTS_LAST, _with_all),
    )
    for rules, given in turns:
        shown = given(signs)
        if rule := next((rule for rule in rules if rule(shown)), None):
            return rule if given is _with_all else partial(_cause_in_lines, rule, given)
    return None


def _cause_in_lines(rule: CauseRule, given: Callable[[Signs], Signs], signs: Signs) -> Cause | None:
    return rule(given(signs))


def _with_all(signs: Signs) -> Signs:
    return signs


def _without_events(signs: Signs) -> Signs:
    return replace(signs, pod=replace(signs.pod, events=())) if signs.pod and signs.pod.events else signs


def _of_the_program(signs: Signs) -> Signs:
    """The signs with the program's own lines alone. "Ended with OOMKilled" is the kubelet's, for any program."""
    return replace(_without_events(signs), is_of_program=True)


def _with_more_words(signs: Signs) -> Signs:
    """The signs with the further lines alone, the best first."""
    if signs.pod is None:
        return signs
    log = tuple(reversed(signs.pod.more_words))
    return replace(signs, pod=replace(signs.pod, log=log, events=(), message="", last_words=""))
