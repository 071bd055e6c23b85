"""Converts rows to the input of the rules in `health.stack.causes`."""

from datetime import datetime, timedelta

from fleet.models import Node, Operand, Pod
from gpu.operands import DRIVER, title_of
from gpu.resources.names import is_dra
from health.models import CrashLog
from health.stack.causes import PodSigns, Signs
from health.stack.rows import StackRows

# How long an operand may take to come up. A driver is compiled first; its startup probe gives it 20 minutes.
TIMEOUT = timedelta(minutes=5)
TIMEOUT_WITH_DRIVER = timedelta(minutes=15)
OUT_OF_MEMORY = "OOMKilled"  # why the kubelet says that a container ended
RECENT_LOG = timedelta(minutes=40)  # the log of a ready operand is read every 15 minutes while its work is missing


def signs_of(node: Node, operand: str, daemon_set: Operand | None) -> Signs:
    return Signs(
        operand=operand,
        title=title_of(operand),
        node=node.name,
        labels=node.labels,
        taints=node.taints,
        selector=daemon_set.node_selector if daemon_set else {},
        affinity=daemon_set.node_affinity if daemon_set else (),
        tolerations=daemon_set.tolerations if daemon_set else (),
        has_daemon_set=daemon_set is not None,
        daemon_set=daemon_set.name if daemon_set else "",
        runs_version=node.driver_version,
        is_node_ready=node.is_ready,
        is_gpu_node=node.is_gpu_node and node.gpu_vendor in ("", "nvidia"),
        is_of_vendor=node.is_gpu_node and node.gpu_vendor not in ("", "nvidia"),
        vendor=node.gpu_vendor if node.gpu_vendor != "nvidia" else "",
        not_ready_message=node.not_ready_reason,
        kernel=node.kernel,
        os_image=node.os_image,
        runtime=node.container_runtime,
        mig_config=node.mig_config,
        mig_state=node.mig_config_state,
        has_dra=any(map(is_dra, node.capacity)),
        gpus_expected=sum(node.expected.values()) or node.gpu_expected or 0,
        gpus_allocatable=sum(node.allocatable.values()) or node.gpu_allocatable or 0,
    )


def pod_signs(pod: Pod, log: CrashLog | None, rows: StackRows) -> PodSigns:
    reason, message = split(pod.waiting_reason)
    timeout = TIMEOUT_WITH_DRIVER if pod.operand == DRIVER else TIMEOUT
    return PodSigns(
        name=str(pod),
        phase=pod.phase,
        is_ready=pod.is_ready,
        is_leaving=pod.deleted_at is not None,
        reason=reason,
        message=message,
        status=pod.status,
        container=pod.stuck_container,
        last_words=pod.last_words,
        more_words=tuple(pod.more_words.splitlines()),
        log=tuple(line for line in log.lines.splitlines() if line.strip()) if log else (),
        is_log_of_ready=log is not None and pod.operand in rows.missed and _is_ready_container_log(pod, log, rows.now),
        events=rows.events_by_uid.get(pod.uid, []),
        image=pod.image,
        restarts=pod.restarts,
        is_overdue=pod.started_at is not None and rows.now - pod.started_at >= timeout,
        memory_limit_bytes=_memory_limit(pod),
        had_ended_well=bool(pod.container_settings.get("had_ended_well")),
    )


def _memory_limit(pod: Pod) -> int | None:
    ended = pod.container_settings.get("ended", {})
    if ended.get("reason") != OUT_OF_MEMORY or pod.stuck_container not in ("", ended.get("container")):
        return None
    return 0 if ended.get("has_no_memory_limit") else ended.get("memory_limit_bytes")


def _is_ready_container_log(pod: Pod, log: CrashLog, now: datetime) -> bool:
    """Returns whether the log is of the ready container and is still read again and again."""
    is_since = pod.is_ready and pod.ready_since is not None and log.read_at > pod.ready_since
    return is_since and now - log.read_at <= RECENT_LOG


def split(text: str) -> tuple[str, str]:
    """Returns reason and message of "CrashLoopBackOff: back-off 5m0s"; the reason is one word or empty."""
    reason, _, message = text.partition(": ")
    return (reason, message) if reason.isalnum() else ("", text)
