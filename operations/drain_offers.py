"""The four offers of a blocked drain, with the cost of each (lifecycle R29)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from fleet.models import DisruptionBudget, Node, Pod
from operations.kinds import ENDING_KINDS
from operations.lifecycle import NodeProgress
from operations.models import OperationNode
from operations.restraints import release_vetoes
from wording.durations import spell
from wording.numbers import count

MOST = 5  # blocking pods that are offered by name


@dataclass(frozen=True)
class DrainOffer:
    title: str
    cost: str
    address: str = ""  # of its preview; blank: nothing to start here


def drain_offers_of(row: OperationNode, node: Node | None, *, now: datetime) -> Sequence[DrainOffer]:
    """Returns the offers for a node whose drain failed on blocking pods, while nothing came after it. Five queries."""
    blocking = [pod for pod in row.progress.get("pods", ()) if pod.get("uid")]
    is_gone = row.progress.get("kubelet_gone", False)
    if row.state != NodeProgress.FAILED or not (blocking or is_gone) or node is None or not node.is_unschedulable:
        return ()
    if _is_past(row):
        return ()
    if is_gone:
        return _after_silence(node)
    gpus = row.progress.get("gpus_of", 0)
    asking = {"ask_owners": "on", "reason": row.operation.reason}
    return (
        DrainOffer("Wait longer", _wait_cost(gpus), _address("drain", node)),
        *(DrainOffer("Ask the owner", _owner(pod), _address("drain", node, **asking)) for pod in blocking[:MOST]),
        *_past_budget(row, node, blocking[:MOST], now=now),
        _give_up(node),
    )


def _after_silence(node: Node) -> Sequence[DrainOffer]:
    """Returns the offers for a node whose kubelet was gone: its actor, then the power, while it is (lifecycle R30)."""
    address = reverse("node", args=[node.pk])
    if node.is_ready:
        return (DrainOffer("Drain again", "The kubelet is back and can end pods.", _address("drain", node)),)
    if node.is_ready is False:
        return (DrainOffer("Repair the node", "The kubelet reports again, but the node is not Ready.", address),)
    repair = DrainOffer(
        "Repair the node", "Its pods stay until the kubelet is back. The case names who can reboot it.", address
    )
    cost = "Only with its power off: Kubernetes ends its pods. With it on, volumes lose data. An approver decides."
    return repair, DrainOffer("Mark out of service", cost, _address("out-of-service", node))


def _is_past(row: OperationNode) -> bool:
    """Returns whether a later operation drains or releases the node."""
    later = OperationNode.objects.of_kinds("drain", *ENDING_KINDS)
    return later.filter(node_uid=row.node_uid, operation__gt=row.operation_id).exists()


def _wait_cost(gpus: int) -> str:
    held = f"{count(gpus, 'GPU')} of the node take" if gpus != 1 else "1 GPU of the node takes"
    return (
        f"The node stays cordoned. {held} no new work until its pods are gone." if gpus else "The node stays cordoned."
    )


def _owner(pod: Mapping[str, Any]) -> str:
    if "contact" not in pod:
        whom = " Its contact is unknown: the namespace was not read."
    elif pod["contact"]:
        whom = f" Contact: {pod['contact']}."
    else:
        whom = " Neither pod nor namespace names a contact."
    belongs = f"{pod['name']} belongs to {pod['owner'] or 'no controller'}."
    evicted = "Jobs are evicted after 30 min, or after half of the deadline if that is less."
    return f"A new drain asks by notifications. {evicted} {belongs}{whom}"


def _past_budget(
    row: OperationNode, node: Node, blocking: Sequence[Mapping[str, Any]], *, now: datetime
) -> Iterator[DrainOffer]:
    refused = [pod for pod in blocking if pod.get("budget")]
    rows = Pod.objects.filter(cluster=node.cluster_id, uid__in=[pod["uid"] for pod in refused])
    pods = {pod.uid: pod for pod in rows}
    names = {pod["budget"] for pod in refused}
    named = DisruptionBudget.objects.filter(cluster=node.cluster_id, name__in=names)
    budgets = {(each.namespace, each.name): each for each in named}
    for pod in refused:
        space = pod["name"].partition("/")[0]
        health = _health_after(budgets.get((space, pod["budget"])), pod["budget"])
        cost = f"{_loss_of(pods.get(pod['uid']), now=now)} {health}"
        given = {"pod": pod["name"], "pod_uid": pod["uid"], "budget": pod["budget"], "reason": row.operation.reason}
        yield DrainOffer(f"Evict {pod['name']} past {pod['budget']}", cost, _address("delete-pod", node, **given))


def _loss_of(pod: Pod | None, *, now: datetime) -> str:
    if pod is None or pod.started_at is None:
        return "What the pod loses is unknown."
    return f"The pod has run for {spell(now - pod.started_at)} on {count(pod.gpus, 'GPU')}."


def _health_after(budget: DisruptionBudget | None, name: str) -> str:
    if budget is None:
        return f"Budget {name} is not seen. An approver decides."
    left = max(0, budget.current_healthy - 1)
    return f"{budget.name} then has {left} healthy of {budget.desired_healthy} needed. An approver decides."


def _give_up(node: Node) -> DrainOffer:
    veto = release_vetoes([node.uid]).get(node.uid, "")
    cost = veto or "New pods start on the node again, with its fault."
    return DrainOffer("Give up and release", cost, "" if veto else _address("release", node))


def _address(kind: str, node: Node, **given: str) -> str:
    return f"{reverse('new-operation')}?{urlencode({'kind': kind, 'node': node.pk, **given})}"
