"""Nodes whose GPUs were never offered, and daemons of ComputeDomains that are not ready, with causes."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef

from fleet.models import Cluster, Node, Pod
from gpu.labels import DEPLOY_PREFIX
from gpu.operands import (
    AMD_DRA,
    AMD_PLUGIN,
    COMPUTE_DOMAIN,
    DEVICE_PLUGIN,
    DRA_DRIVER,
    DRIVER,
    DRIVER_INSTALLER,
    GAUDI_PLUGIN,
    INTEL_DRA,
    INTEL_PLUGIN,
    KMM,
    NFD,
    TOOLKIT,
    title_of,
)
from health.evaluation.pod_causes import causes_of_operands, explained
from health.models import CrashLog, Finding
from health.rules.allocatable_below_expected import AllocatableBelowExpected
from health.rules.base import FailingPod, NoOffer
from health.stack import OperandOnNode, read_stacks
from health.stack.causes import USELESS, Cause, Weight

OFFERERS = (DEVICE_PLUGIN, AMD_PLUGIN, INTEL_PLUGIN, GAUDI_PLUGIN, DRA_DRIVER, AMD_DRA, INTEL_DRA)
BEFORE = (DRIVER, DRIVER_INSTALLER, KMM, TOOLKIT)
LABELLED = "feature.node.kubernetes.io/"
STARTS_WITHIN = timedelta(minutes=5)
READ_AT_MOST = 20  # nodes whose stack is read; findings of other nodes have no cause
WITHHOLDS = "plugin_withholds_gpu"  # the only cause that is about single GPUs of a ready plugin
SWITCHES = (f"{DEPLOY_PREFIX}operands", f"{DEPLOY_PREFIX}device-plugin")  # "false": somebody wants it so


def never_offered(cluster: Cluster, *, now: datetime) -> Mapping[str, NoOffer]:
    """Returns the missing offers by node. One query, and nine for the stacks of the first few."""
    empty = Node.objects.filter(cluster=cluster, capacity={}, expected={}, is_ready=True).with_gpus().order_by("name")
    labelled = empty.values_list("pk", "name", "labels")
    names = {pk: name for pk, name, has in labelled if not any(has.get(switch) == "false" for switch in SWITCHES)}
    first = list(Node.objects.filter(pk__in=list(names)[:READ_AT_MOST])) if names else []
    stacks = read_stacks(first, now=now) if first else {}
    offers = {node.name: _offer(node, stacks[node.pk].operands) for node in first}
    return {name: offer for name in names.values() if (offer := offers.get(name, NoOffer())) is not None}


def _offer(node: Node, rows: Sequence[OperandOnNode]) -> NoOffer | None:
    """Returns the component to blame; None if the state is wanted, or its driver is still being installed."""
    # One that runs here comes first: a cluster may use DRA only, and then has no device plugin.
    offerers = sorted((row for row in rows if row.operand in OFFERERS), key=lambda row: not row.pod)
    if offerers and all(row.cause and row.cause.weight is Weight.CHOSEN for row in offerers):
        return None
    told = [
        row
        for row in (*_labelling(node, rows), *_awaited_operands(rows), *offerers)
        if row.cause and row.cause.weight is Weight.WRONG
    ]
    first = next(iter(told), None)
    if first is None or first.cause is None:
        return None if any(row.cause for row in offerers) else NoOffer()
    return NoOffer(
        title_of(first.operand), first.is_ready, first.cause.sentence, first.cause.steps, first.cause.quote,
        first.cause.trouble,
    )  # fmt: skip


def _labelling(node: Node, rows: Sequence[OperandOnNode]) -> Iterator[OperandOnNode]:
    """Yields node feature discovery if it has labelled nothing, since the other operands depend on its labels."""
    if not any(key.startswith(LABELLED) for key in node.labels):
        yield from (row for row in rows if row.operand == NFD)


def _awaited_operands(rows: Sequence[OperandOnNode]) -> Iterator[OperandOnNode]:
    """Yields the operands that must run before GPUs are offered."""
    return (row for row in rows if row.operand in BEFORE and row.pod)


def withheld_gpus(cluster: Cluster, *, now: datetime) -> Mapping[str, NoOffer]:
    """Returns by node why a ready plugin or DRA driver withholds GPUs, by its log. One query, and nine for logs.

    The log is read while a finding of the node says that GPUs are missing.
    """
    missing = Finding.objects.open().filter(cluster=cluster, rule=AllocatableBelowExpected.key).values("node__name")
    logs = CrashLog.objects.filter(cluster=cluster, pod_uid=OuterRef("uid"))
    ready = Pod.objects.filter(cluster=cluster, operand__in=OFFERERS, is_ready=True, node_name__in=missing)
    pods = list(ready.filter(Exists(logs)).order_by("node_name", "pk")[:READ_AT_MOST])
    causes = causes_of_operands(pods, now=now)
    found = ((pod, causes[str(pod)]) for pod in pods if str(pod) in causes)
    return {pod.node_name: _withheld(pod.operand, cause) for pod, cause in found if cause.key == WITHHOLDS}


def _withheld(operand: str, cause: Cause) -> NoOffer:
    sentence = f"{cause.title}. {cause.summary.removeprefix(USELESS).strip()}"
    return NoOffer(title_of(operand), is_ready=True, cause=sentence, steps=cause.steps, message=cause.quote)


def domain_daemons(cluster: Cluster, *, now: datetime) -> Mapping[str, FailingPod]:
    """Returns by node a daemon that is not ready. One query, and eight for the stacks of the first few."""
    late = Pod.objects.filter(
        cluster=cluster, operand=COMPUTE_DOMAIN, is_ready=False, deleted_at=None, started_at__lt=now - STARTS_WITHIN
    )
    pods = {pod.node_name: pod for pod in late.exclude(node=None).not_done().select_related("node").order_by("-pk")}
    causes = causes_of_operands(list(pods.values()), now=now)
    daemons = {name: FailingPod(str(pod), pod.status, pod.restarts, COMPUTE_DOMAIN) for name, pod in pods.items()}
    return {
        name: explained(daemon, causes[daemon.name]) if daemon.name in causes else daemon
        for name, daemon in daemons.items()
    }
