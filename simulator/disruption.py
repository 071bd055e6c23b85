"""The disruption controller: keeps each PodDisruptionBudget's status true as pods come, go and change."""

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator import selectors
from simulator.budgets import counted
from simulator.cursor import Cursor
from simulator.events import Change, EventType
from simulator.kinds import DISRUPTION_BUDGET, JOB, POD, REPLICA_SET, STATEFUL_SET, Kind
from simulator.refusals import Refused
from simulator.store import Store

Obj = dict[str, Any]
GATHER_S = 0.02
"""Changes within this time are answered by one look."""
SCALED: tuple[Kind, ...] = (REPLICA_SET, STATEFUL_SET, JOB)


@dataclass(slots=True)
class Covered:
    """A budget's selector, and the pods under it by name."""

    selector: selectors.Selector | None
    pods: dict[str, Obj] = field(default_factory=dict)

    def covers(self, pod: Mapping[str, Any]) -> bool:
        return self.selector is not None and self.selector.matches(pod["metadata"].get("labels") or {})


class BudgetKeeper:
    """Its cost follows the changes: a pod that changes is looked at once for each budget of its namespace."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stirred = threading.Event()
        self._stopping = threading.Event()
        self._covered: dict[str, dict[str, Covered]] = defaultdict(dict)
        self._cursors = {kind: store.cursor(kind, since="0") for kind in (DISRUPTION_BUDGET, POD, *SCALED)}
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
        """Judge every budget that a change since the last look can have touched."""
        touched: set[tuple[str, str]] = set()
        for kind, cursor in self._cursors.items():
            for change in self._read(kind, cursor):
                touched |= self._taken(kind, change)
        for namespace, name in touched:
            with self._store.lock:
                self._judge(namespace, name)

    def _read(self, kind: Kind, cursor: Cursor) -> list[Change]:
        try:
            return cursor.read()
        except Refused:  # the past is forgotten: everything there is counts as new
            with self._store.lock:
                cursor.version = self._store.version
                records = self._store.page(kind).records
            if kind is POD:
                for covered in self._every():
                    covered.pods.clear()
            return [Change(EventType.ADDED, record, None) for record in records]

    def _every(self) -> Iterator[Covered]:
        for held in self._covered.values():
            yield from held.values()

    def _taken(self, kind: Kind, change: Change) -> set[tuple[str, str]]:
        namespace = change.record.obj["metadata"]["namespace"]
        if kind is DISRUPTION_BUDGET:
            return self._budget_taken(namespace, change)
        budgets = self._covered.get(namespace, {})
        if kind is POD:
            return {(namespace, name) for name, covered in budgets.items() if self._pod_taken(covered, change)}
        return {(namespace, name) for name in budgets}

    def _budget_taken(self, namespace: str, change: Change) -> set[tuple[str, str]]:
        budget = change.record.obj
        name = budget["metadata"]["name"]
        if change.type is EventType.DELETED:
            self._covered[namespace].pop(name, None)
            return set()
        selector = selectors.from_label_selector(budget["spec"].get("selector"))
        held = self._covered[namespace].get(name)
        if held is None or held.selector != selector:
            covered = Covered(selector)
            for record in self._store.page(POD, namespace, matches=covered.covers).records:
                covered.pods[record.obj["metadata"]["name"]] = record.obj
            self._covered[namespace][name] = covered
        return {(namespace, name)}

    def _pod_taken(self, covered: Covered, change: Change) -> bool:
        pod = change.record.obj
        name = pod["metadata"]["name"]
        if change.type is EventType.DELETED or not covered.covers(pod):
            return covered.pods.pop(name, None) is not None
        covered.pods[name] = pod
        return True

    def _judge(self, namespace: str, name: str) -> None:
        record = self._store.shelf(DISRUPTION_BUDGET).records.get(f"{namespace}/{name}")
        covered = self._covered[namespace].get(name)
        if record is None or covered is None:
            return
        budget, pods = record.obj, list(covered.pods.values())
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
