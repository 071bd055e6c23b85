"""Nodes whose GPUs were never offered, and daemons of ComputeDomains that are not ready, with causes."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from fleet.models import Cluster, Node, Pod
from gpu.labels import DEPLOY_PREFIX
from gpu.operands import (
    AMD_DRA,
    AMD_PLUGIN,
    COMPUTE_DOMAIN,
    DEVICE_PLUGIN,
    DRA_DRIVER,
    DRIVER,
    GAUDI_PLUGIN,
    INTEL_DRA,
    INTEL_PLUGIN,
    NFD,
    title_of,
)
from health.rules.base import FailingPod, NoOffer
from health.stack import OperandOnNode, read_stack
from health.stack.causes import Weight

OFFERERS = (DEVICE_PLUGIN, AMD_PLUGIN, INTEL_PLUGIN, GAUDI_PLUGIN, DRA_DRIVER, AMD_DRA, INTEL_DRA)
LABELLED = "feature.node.kubernetes.io/"
STARTS_WITHIN = timedelta(minutes=5)
READ_AT_MOST = 5  # nodes whose stack is read; findings of other nodes have no cause
SWITCHES = (f"{DEPLOY_PREFIX}operands", f"{DEPLOY_PREFIX}device-plugin")  # "false": somebody wants it so


def never_offered(cluster: Cluster, *, now: datetime) -> Mapping[str, NoOffer]:
    """Returns the missing offers by node. One query, and eight for each of the first few."""
    nodes = Node.objects.filter(cluster=cluster, capacity={}, expected={}, is_ready=True).with_gpus().order_by("name")
    found: dict[str, NoOffer] = {}
    for node in nodes.iterator(chunk_size=500):
        if any(node.labels.get(switch) == "false" for switch in SWITCHES):
            continue
        offer = _offer(node, now=now) if len(found) < READ_AT_MOST else NoOffer()
        if offer is not None:
            found[node.name] = offer
    return found


def _offer(node: Node, *, now: datetime) -> NoOffer | None:
    """Returns the component to blame; None if the state is wanted, or its driver is still being installed."""
    rows = read_stack(node, now=now).operands
    offerers = [row for row in rows if row.operand in OFFERERS]
    if offerers and all(row.cause and row.cause.weight is Weight.CHOSEN for row in offerers):
        return None
    told = [
        row
        for row in (*_labelling(node, rows), *offerers, *_before(rows))
        if row.cause and row.cause.weight is Weight.WRONG
    ]
    first = next(iter(told), None)
    if first is None or first.cause is None:
        return None if any(row.cause for row in offerers) else NoOffer()
    return NoOffer(title_of(first.operand), first.is_ready, first.cause.sentence, first.cause.steps, first.cause.quote)


def _labelling(node: Node, rows: Sequence[OperandOnNode]) -> Iterator[OperandOnNode]:
    """Yields node feature discovery if it has labelled nothing, since the other operands depend on its labels."""
    if not any(key.startswith(LABELLED) for key in node.labels):
        yield from (row for row in rows if row.operand == NFD)


def _before(rows: Sequence[OperandOnNode]) -> Iterator[OperandOnNode]:
    return (row for row in rows if row.operand == DRIVER)


def domain_daemons(cluster: Cluster, *, now: datetime) -> Mapping[str, FailingPod]:
    """Returns by node a daemon that is not ready. One query, and nine for each of the first few."""
    late = Pod.objects.filter(
        cluster=cluster, operand=COMPUTE_DOMAIN, is_ready=False, deleted_at=None, started_at__lt=now - STARTS_WITHIN
    )
    found: dict[str, FailingPod] = {}
    for pod in late.exclude(node=None).not_done().select_related("node").order_by("node_name", "pk"):
        if pod.node_name in found or pod.node is None:
            continue
        cause = None
        if len(found) < READ_AT_MOST:
            rows = read_stack(pod.node, now=now).operands
            cause = next((row.cause for row in rows if row.pod == str(pod)), None)
        found[pod.node_name] = FailingPod(
            str(pod), pod.status, pod.restarts, COMPUTE_DOMAIN,
            cause=cause.sentence if cause else "", steps=cause.steps if cause else (),
            message=cause.quote if cause else "",
        )  # fmt: skip
    return found
