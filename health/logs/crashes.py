"""The last log lines of crashing operands, without secrets, stored beside the pod.

A worker reads a few at a time, and each crash once, since every read loads the API server and the node's kubelet.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When

from fleet.messages import announce
from fleet.models import Cluster, Node, Observer, Pod
from gpu.labels import AMD_PROFILE_FAILED, AMD_PROFILE_STATE, MIG_CONFIG_STATE
from gpu.operands import AMD_CONFIG, COMPUTE_DOMAIN, DRIVER, MIG_MANAGER, VALIDATOR
from health.models import CrashLog, Finding
from health.stack.causes.base import CC_STATE, VGPU_STATE
from health.stack.causes.images import PULLING
from health.stack.missed_work import MAIN_CONTAINER, MISSED, OFFERS
from kube import client
from kube.client.single_requests import last_lines
from kube.log_lines import LineWeight, as_shown, decisive_index, is_frame, weight
from kube.redaction import redacted

AT_MOST = 20  # logs a run
LOOKED_AT = 500  # pods a run: a broken image makes every node's pod crash, and one log tells of all
SECONDS = 30.0
KEPT_LINES = 20
KEPT_CHARS = 4096
LINE_CHARS = 400
LOOKED_AT_CHARS = 2000  # of a line, in the search for secrets: a log may be one line of a mebibyte
SLOW = timedelta(minutes=5)  # a container that neither ends nor becomes ready in this time is stuck
AGAIN = timedelta(minutes=15)  # an init container's crashes are not counted on its pod: its log is read again
UNSTARTED = (*PULLING, "CreateContainerConfigError", "CreateContainerError")

# Operands that keep running after a failure and report it in a node label: mig-parted, k8s-cc-manager, vgpu-device-
# manager and AMD's device-config-manager then wait for the label to change. Label, its value, container; a blank
# container is the only one of the pod.
FAILS_BY_LABEL = {
    MIG_MANAGER: (MIG_CONFIG_STATE, "failed", "nvidia-mig-manager"),
    "cc-manager": (CC_STATE, "failed", "nvidia-cc-manager"),
    "vgpu-device-manager": (VGPU_STATE, "failed", "nvidia-vgpu-device-manager"),
    AMD_CONFIG: (AMD_PROFILE_STATE, AMD_PROFILE_FAILED, ""),
}
SPEAK_WHILE_SLOW = (DRIVER, VALIDATOR, COMPUTE_DOMAIN)
# Init containers of the other operands that only wait for these, of NVIDIA's and AMD's operators.
WAIT_FOR_OTHERS = Q(stuck_container__endswith="-validation") | Q(stuck_container="driver-init")
PROGRESS = re.compile(r"^[\s.]*(?:\[[#=>\s.-]*\]\s*\d+\s*%[\s.]*)?$")

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Due:
    pod: Pod
    container: str
    has_crashed: bool


def read_due_logs(cluster: Cluster, *, clock: Callable[[], datetime]) -> int:
    """Reads logs and returns how many. Eight queries if none is due."""
    due = [
        *_due(cluster, now=clock()),
        *_failed_by_label(cluster, now=clock()),
        *_offering_nothing(cluster, now=clock()),
        *_missed(cluster, now=clock()),
    ]
    due = sorted({(one.pod.uid, one.container): one for one in due}.values(), key=_urgency)[:AT_MOST]
    if not due:
        return 0
    CrashLog.objects.filter(cluster=cluster).exclude(pod_uid__in=_operands(cluster).values("uid")).delete()
    try:
        with client.reach(cluster.kubeconfig, cluster.context, uid=cluster.uid) as connection:
            number = _read_all(cluster, connection, due, clock=clock)
    except client.ClusterError as error:
        log.info("no crash log is read", cluster=cluster.name, reason=str(error))
        return 0
    if number:
        seq = Observer.batch_of(cluster.pk)
        nodes = {one.pod.node_id for one in due if one.pod.node_id}
        log.info("crash logs are read", cluster=cluster.name, logs=number, nodes=len(nodes))
        announce.cluster_changed(cluster.pk, seq=seq, nodes=(), kinds=("crash-logs",), at=clock())
    return number


def _operands(cluster: Cluster):
    return Pod.objects.filter(cluster=cluster).exclude(operand="")


def _due(cluster: Cluster, *, now: datetime) -> Iterator[Due]:
    """Yields pods whose containers crashed since the last read, the latest crash first."""
    crashed = ~Q(stuck_container="") & ~Q(waiting_reason="")
    speaks = Q(operand__in=SPEAK_WHILE_SLOW) | (~Q(stuck_container="") & ~WAIT_FOR_OTHERS)
    slow = speaks & Q(started_at__lt=now - SLOW)
    stuck = _operands(cluster).filter(crashed | slow, is_ready=False, deleted_at=None)
    pods = list(stuck.exclude(node_name="").exclude(phase="Succeeded").order_by("-changed_at", "pk")[:LOOKED_AT])
    known = {
        (row.pod_uid, row.container): row
        for row in CrashLog.objects.filter(cluster=cluster, pod_uid__in=[pod.uid for pod in pods])
    }
    for pod in pods:
        container = pod.stuck_container or MAIN_CONTAINER.get(pod.operand, "")
        has_crashed = bool(pod.stuck_container and pod.waiting_reason)
        if not _has_a_log(pod, has_crashed=has_crashed):
            continue
        if container and _is_new(known.get((pod.uid, container)), pod, now=now):
            yield Due(pod, container, has_crashed)


def _failed_by_label(cluster: Cluster, *, now: datetime) -> Iterator[Due]:
    """Yields managers that report a failure by a label of their node and are ready nonetheless. A query for each."""
    for operand, (label, failed, container) in FAILS_BY_LABEL.items():
        nodes = Node.objects.filter(**{f"labels__{label}": failed}, cluster=cluster).values("name")
        pods = _operands(cluster).filter(is_ready=True, deleted_at=None, node_name__in=nodes)
        yield from _unread(pods, {operand: container}, now=now)


def _offering_nothing(cluster: Cluster, *, now: datetime) -> Iterator[Due]:
    """Yields ready plugins and DRA drivers on nodes that offer no GPU. One query."""
    nodes = Node.objects.filter(cluster=cluster, capacity={}).with_gpus().values("name")
    pods = _operands(cluster).filter(is_ready=True, deleted_at=None, node_name__in=nodes)
    yield from _unread(pods.filter(started_at__lt=now - SLOW), OFFERS, now=now)


def _missed(cluster: Cluster, *, now: datetime) -> Iterator[Due]:
    """Yields ready operands whose work is missing by a finding of their node. One query."""
    found = Finding.objects.open().filter(cluster=cluster, node__isnull=False).order_by()
    of_rules, containers = Q(), dict[str, str]()
    for rule, operands in MISSED.items():
        of_rules |= Q(operand__in=operands, node_name__in=found.filter(rule=rule).values("node__name"))
        containers |= operands
    pods = _operands(cluster).filter(of_rules, is_ready=True, deleted_at=None, started_at__lt=now - SLOW)
    yield from _unread(pods, containers, now=now)


def _unread(pods: QuerySet[Pod], containers: Mapping[str, str], *, now: datetime) -> Iterator[Due]:
    """Yields pods of some operands whose log was not read lately, the longest ago first: each has its turn."""
    read = Case(*(When(operand=operand, then=Value(name)) for operand, name in containers.items()))
    logs = CrashLog.objects.filter(
        cluster=OuterRef("cluster"), pod_uid=OuterRef("uid"), container=OuterRef("read_container")
    )
    recent = logs.filter(restarts=OuterRef("restarts"), read_at__gt=now - AGAIN)
    due = pods.filter(operand__in=containers).alias(read_container=read, read_at=Subquery(logs.values("read_at")[:1]))
    for pod in due.exclude(Exists(recent)).order_by(F("read_at").asc(nulls_first=True), "pk")[:AT_MOST]:
        yield Due(pod, containers[pod.operand], has_crashed=False)


def _urgency(due: Due) -> tuple[bool, bool]:
    """Returns the sort key: crashes before slow starts, and drivers first, since the others wait for them."""
    return not due.has_crashed, due.pod.operand != DRIVER


def _has_a_log(pod: Pod, *, has_crashed: bool) -> bool:
    return not has_crashed or pod.restarts > 0 or not pod.waiting_reason.startswith(UNSTARTED)


def _is_new(known: CrashLog | None, pod: Pod, *, now: datetime) -> bool:
    return known is None or known.restarts != pod.restarts or now - known.read_at >= AGAIN


def _read_all(
    cluster: Cluster, connection: client.Connection, due: Sequence[Due], *, clock: Callable[[], datetime]
) -> int:
    """Reads the logs and returns how many.

    :raises ClusterError: when the cluster stops answering
    """
    until, number, forbidden = time.monotonic() + SECONDS, 0, dict[str, str]()
    for one in due:
        if time.monotonic() > until:
            break
        lines, refused = _read_one(connection, one, forbidden)
        _store_log(cluster, one, lines, refused, now=clock())
        number += 1
    return number


def _read_one(connection: client.Connection, one: Due, forbidden: dict[str, str]) -> tuple[str, str]:
    """Returns the lines, or why there are none. A forbidden namespace is tried once per run.

    :raises ClusterError: when reading another log cannot succeed either
    """
    pod = one.pod
    if pod.namespace in forbidden:
        return "", forbidden[pod.namespace]
    try:
        return lines_to_store(
            last_lines(connection, pod.namespace, pod.name, one.container, crashed=one.has_crashed)
        ), ""
    except client.Forbidden as refusal:
        forbidden[pod.namespace] = f"not allowed: the right get on pods/log is missing. {refusal}"
        return "", forbidden[pod.namespace]
    except client.Absent:
        return "", "the pod is gone."
    except (client.Refused, client.ServerFailing, client.Unreachable) as error:  # the node's kubelet, most often
        return "", str(error)


def lines_to_store(lines: Iterable[str]) -> str:
    """Returns the lines of a log to store: the last ones, and errors before them, without secrets."""
    said = (_first_words(as_shown(line)) for line in lines)
    worth = [redacted(line)[:LINE_CHARS] for line in said if not PROGRESS.match(line)]
    worth = _lines_to_store([line for line in worth if not is_frame(line)] or worth)
    while len("\n".join(worth)) > KEPT_CHARS:
        del worth[min(range(len(worth)), key=lambda at: weight(worth[at]))]
    return "\n".join(worth)


def _first_words(line: str) -> str:
    """Returns the start of a long line without the cut word, since a partial secret cannot be recognised."""
    if len(line) <= LOOKED_AT_CHARS:
        return line
    return line[:LOOKED_AT_CHARS].rpartition(" ")[0] or line[:LOOKED_AT_CHARS]


def _lines_to_store(lines: Sequence[str]) -> list[str]:
    """Returns as many lines as are stored.

    Half may be earlier ones: the error precedes the stack trace and the cleanup.
    """
    weights = [weight(line) for line in lines]
    wrong = [at for at, each in enumerate(weights) if each >= LineWeight.WORDED]
    heaviest = sorted(wrong, key=lambda at: (weights[at], at))[-KEPT_LINES // 2 :]
    told = decisive_index(lines)
    chosen = {*heaviest, *(() if told is None else (told,))}
    for at in reversed(range(len(lines))):
        if len(chosen) >= KEPT_LINES:
            break
        chosen.add(at)
    return [lines[at] for at in sorted(chosen)]


def _store_log(cluster: Cluster, one: Due, lines: str, refused: str, *, now: datetime) -> None:
    CrashLog.objects.update_or_create(
        cluster=cluster,
        pod_uid=one.pod.uid,
        container=one.container,
        defaults={"restarts": one.pod.restarts, "lines": lines, "refused": refused[:500], "read_at": now},
    )
