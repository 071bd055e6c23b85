"""The disruption controller: keeps each PodDisruptionBudget's status true as pods come, go and change."""

import math
import threading
from datetime import datetime, timedelta
from typing import Any

from simulator import selectors
from simulator.clock import stamp
from simulator.eviction import is_ready
from simulator.kinds import DISRUPTION_BUDGET, JOB, POD, REPLICA_SET, STATEFUL_SET, Kind
from simulator.refusals import Refused
from simulator.store import Store

Obj = dict[str, Any]
GATHER_S = 0.02
"""Changes within this time are answered by one look."""
DISRUPTED_FOR = timedelta(minutes=2)
"""How long an eviction that has not shown itself on its pod still counts (DeletionTimeout of the controller)."""
SCALED: tuple[Kind, ...] = (REPLICA_SET, STATEFUL_SET, JOB)


class BudgetKeeper:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._stirred = threading.Event()
        self._stopping = threading.Event()
        self._cursors = {kind: store.cursor(kind, since="0") for kind in (POD, DISRUPTION_BUDGET, *SCALED)}
        self._stops = [cursor.on_change(self._stirred.set) for cursor in self._cursors.values()]

    def start(self) -> None:
        self._stirred.set()
        threading.Thread(target=self._run, name="disruption", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()
        self._stirred.set()
        for stop in self._stops:
            stop()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._stirred.wait()
            self._stopping.wait(GATHER_S)
            self._stirred.clear()
            self.look()

    def look(self) -> None:
        """Judge the budgets of every namespace in which something changed."""
        for namespace in self._stirred_namespaces():
            with self._store.lock:
                for record in self._store.page(DISRUPTION_BUDGET, namespace).records:
                    self._judge(record.obj)

    def _stirred_namespaces(self) -> set[str]:
        found: set[str] = set()
        for kind, cursor in self._cursors.items():
            try:
                found |= {change.record.obj["metadata"]["namespace"] for change in cursor.read()}
            except Refused:  # the past is forgotten: look everywhere, and go on from now
                cursor.version = self._store.version
                found |= {record.obj["metadata"]["namespace"] for record in self._store.page(kind).records}
        return found

    def _judge(self, budget: Obj) -> None:
        selector = selectors.from_label_selector(budget["spec"].get("selector"))
        namespace = budget["metadata"]["namespace"]
        matches = (lambda obj: selector.matches(obj["metadata"].get("labels") or {})) if selector else None
        pods = [record.obj for record in self._store.page(POD, namespace, matches=matches).records] if selector else []
        status = counted(budget, pods, self._expected(budget, pods), self._store.clock.now())
        if status != budget.get("status"):
            self._store.mark(DISRUPTION_BUDGET, {**budget, "status": status})

    def _expected(self, budget: Obj, pods: list[Obj]) -> int:
        """How many pods there should be: what the owners want, unless the budget counts only what is there."""
        spec = budget["spec"]
        if "maxUnavailable" not in spec and not isinstance(spec.get("minAvailable"), str):
            return len(pods)
        owners = {owner["uid"]: (owner, pod) for pod in pods if (owner := _controller(pod))}
        unowned = sum(_controller(pod) is None for pod in pods)
        return unowned + sum(self._wanted(owner, pod) for owner, pod in owners.values())

    def _wanted(self, owner: Obj, pod: Obj) -> int:
        kind = next((kind for kind in SCALED if kind.name == owner["kind"]), None)
        if kind is None:
            return 1
        try:
            spec = self._store.get(kind, owner["name"], pod["metadata"]["namespace"])["spec"]
        except Refused:  # the owner is gone and its pods will follow
            return 1
        return int(spec.get("parallelism" if kind is JOB else "replicas", 1))


def _controller(pod: Obj) -> Obj | None:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def counted(budget: Obj, pods: list[Obj], expected: int, now: datetime) -> Obj:
    """The status that a budget should have."""
    old, spec = budget.get("status") or {}, budget["spec"]
    disrupted = _still_disrupted(old.get("disruptedPods") or {}, pods, now)
    healthy = sum(_counts(pod, disrupted) for pod in pods)
    desired = _desired(spec, expected)
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    status = {
        **{key: value for key, value in old.items() if key != "disruptedPods"},
        "observedGeneration": budget["metadata"].get("generation", 1),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": _conditions(old.get("conditions") or [], budget, now, is_allowed=allowed > 0),
    }
    return {**status, "disruptedPods": disrupted} if disrupted else status


def _still_disrupted(held: dict[str, str], pods: list[Obj], now: datetime) -> dict[str, str]:
    present = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
    oldest = stamp(now - DISRUPTED_FOR)
    return {name: since for name, since in held.items() if name in present and since >= oldest}


def _counts(pod: Obj, disrupted: dict[str, str]) -> bool:
    metadata = pod["metadata"]
    return is_ready(pod) and "deletionTimestamp" not in metadata and metadata["name"] not in disrupted


def _desired(spec: Obj, expected: int) -> int:
    if "maxUnavailable" in spec:
        return max(expected - _scaled(spec["maxUnavailable"], expected), 0)
    return _scaled(spec.get("minAvailable", 1), expected)


def _scaled(amount: int | str, whole: int) -> int:
    """Percentages round up, for both members of the spec."""
    if isinstance(amount, int):
        return amount
    return math.ceil(whole * int(amount.rstrip("%")) / 100)


def _conditions(held: list[Obj], budget: Obj, now: datetime, *, is_allowed: bool) -> list[Obj]:
    status = "True" if is_allowed else "False"
    was = next((condition for condition in held if condition["type"] == "DisruptionAllowed"), None)
    condition = {
        "type": "DisruptionAllowed",
        "status": status,
        "reason": "SufficientPods" if is_allowed else "InsufficientPods",
        "message": "",
        "observedGeneration": budget["metadata"].get("generation", 1),
        "lastTransitionTime": was["lastTransitionTime"] if was and was["status"] == status else stamp(now),
    }
    return [*(other for other in held if other["type"] != "DisruptionAllowed"), condition]
