"""The eviction subresource: a deletion that asks the disruption budgets first (policy/v1)."""

from datetime import datetime
from typing import Any

from simulator import deletion, selectors
from simulator.clock import stamp
from simulator.etcd import Etcd
from simulator.kinds import DISRUPTION_BUDGET, POD, Kind
from simulator.refusals import Cause, Refused, forbidden, too_many_requests

Obj = dict[str, Any]
VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
PROCESSING_RETRY_S = 10


def evict(store: Etcd, pod: Obj, *, grace_s: int | None, dry_run: bool) -> None:
    metadata, status = pod["metadata"], pod.get("status") or {}
    is_free = status.get("phase") in {"Succeeded", "Failed", "Pending"} or "deletionTimestamp" in metadata
    if not is_free:
        ask_budget(store, pod, dry_run=dry_run)
    if not dry_run:
        deletion.delete(store, POD, pod, grace_s=grace_s, propagation=None)


def ask_budget(store: Etcd, pod: Obj, *, dry_run: bool) -> None:
    """:raises Refused: 429 while the budget is used up, 500 when several budgets cover the pod."""
    budgets = budgets_of(store, pod)
    if len(budgets) > 1:
        raise Refused(500, "", SEVERAL)
    if not budgets or (not is_ready(pod) and _lets_unhealthy_go(budgets[0])):
        return
    spent = _spend(budgets[0], pod["metadata"]["name"], store.clock.now())
    if not dry_run:
        store.mark(DISRUPTION_BUDGET, spent)


def budgets_of(store: Etcd, pod: Obj) -> list[Obj]:
    labels = pod["metadata"].get("labels") or {}
    page = store.page(DISRUPTION_BUDGET, pod["metadata"]["namespace"])
    return [record.obj for record in page.records if _covers(record.obj, labels)]


def _covers(budget: Obj, labels: dict[str, str]) -> bool:
    selector = selectors.from_label_selector(budget["spec"].get("selector"))
    return selector is not None and selector.matches(labels)


def is_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _lets_unhealthy_go(budget: Obj) -> bool:
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _spend(budget: Obj, pod_name: str, now: datetime) -> Obj:
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        cause = f"The disruption budget {name} is still being processed by the server."
        raise _used_up(cause, retry_after_s=PROCESSING_RETRY_S)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        singular = Kind("policy", "v1", "poddisruptionbudget", "PodDisruptionBudget")
        raise forbidden(singular, name, "pdb disruptions allowed is negative")
    if allowed == 0:
        desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        cause = f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        raise _used_up(cause, retry_after_s=0)
    disrupted = {**(status.get("disruptedPods") or {}), pod_name: stamp(now)}
    return {**budget, "status": {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}}


def _used_up(message: str, *, retry_after_s: int) -> Refused:
    return too_many_requests(VIOLATES, retry_after_s=retry_after_s, causes=(Cause("", message, "DisruptionBudget"),))


def scheduled(pod: Obj, node_name: str, now: datetime) -> Obj:
    """The pod as pods/binding leaves it."""
    status = pod.get("status") or {}
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": stamp(now)}
    others = [held for held in status.get("conditions") or [] if held["type"] != "PodScheduled"]
    return {
        **pod,
        "spec": {**pod["spec"], "nodeName": node_name},
        "status": {**status, "conditions": [*others, condition]},
    }
