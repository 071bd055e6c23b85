"""Binds pods to nodes: filter, spread, bind, or say why not. Equal pods are tried once, not each."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable

from simulator.actors import fits, preemption
from simulator.actors.objects import (
    Key,
    Obj,
    by_age,
    condition,
    is_active,
    is_finished,
    is_unschedulable,
    key,
    name,
    node_of,
    spec,
)
from simulator.actors.world import World
from simulator.clock import stamp
from simulator.kinds import NODE, POD
from simulator.quantities import Amounts, amounts, requests

SOURCE = "default-scheduler"
TOLD_AGAIN_S = 60


class Scheduler:
    def __init__(self, world: World) -> None:
        self._world = world
        self._pending: dict[Key, Obj] = {}
        self._used: dict[str, Amounts] = defaultdict(Counter)
        self._told: dict[str, str] = {}
        self._ranks: Counter[int] = Counter()  # how many pods of each importance are bound
        self._has: dict[str, Amounts] = {}  # what each node offers, read once
        self._nominated: dict[str, tuple[str, Obj]] = {}  # uid of a pod for whom others were pushed aside
        world[POD].on_change(self._pod_changed)
        world[NODE].on_change(self._node_changed)

    def schedule(self) -> None:
        """One pass over the queue, the most important and then the oldest first."""
        refused: dict[str, str] = {}
        hopeless: set[str] = set()
        for pod in sorted(by_age(self._pending.values()), key=lambda each: -preemption.importance(each)):
            shape = _shape(pod)
            why = refused.get(shape) or self._place(pod)
            if not why:
                continue
            if not fits.pinned_node(pod):
                refused[shape] = why
            if shape not in hopeless and not self._preempt(pod):
                hopeless.add(shape)
            self._tell(pod, why)

    def _place(self, pod: Obj) -> str:
        """Bind it; or the sentence that says why no node would do."""
        wanted = requests(pod)
        reasons: Counter[str] = Counter()
        best: tuple[float, str] | None = None
        for node in self._candidates(pod):
            why = wrong_node(pod, node) or self._short_of(pod, wanted, node)
            reasons.update(why)
            if not why:
                mark = (self._load(node, wanted), name(node))
                best = min(best, mark) if best else mark
        if best is None:
            return no_node(len(self._world[NODE].objects), reasons)
        self._bind(pod, best[1])
        return ""

    def _candidates(self, pod: Obj) -> Iterable[Obj]:
        pinned = fits.pinned_node(pod)
        if not pinned:
            return self._world[NODE].all()
        node = self._world[NODE].get(pinned)
        return [node] if node else []

    def _missing(self, pod: Obj, wanted: Amounts, node: Obj) -> Amounts:
        """How much of each resource is not free for this pod."""
        has, used = self._offered(node), self._used[name(node)]
        if self._nominated:
            used = used + self._promised(pod, name(node))
        short = {key: used[key] + amount - has[key] for key, amount in wanted.items() if amount}
        return Counter({key: amount for key, amount in short.items() if amount > 0})

    def _offered(self, node: Obj) -> Amounts:
        has = self._has.get(name(node))
        if has is None:
            has = self._has[name(node)] = amounts(node["status"].get("allocatable"))
        return has

    def _short_of(self, pod: Obj, wanted: Amounts, node: Obj) -> list[str]:
        missing = self._missing(pod, wanted, node)
        return ["Too many pods" if key == "pods" else f"Insufficient {key}" for key in missing]

    def _promised(self, pod: Obj, node_name: str) -> Amounts:
        """Room that was made on a node for others no less important."""
        total: Amounts = Counter()
        for uid, (node, other) in self._nominated.items():
            is_before = preemption.importance(other) >= preemption.importance(pod)
            if node == node_name and is_before and uid != pod["metadata"]["uid"]:
                total.update(requests(other))
        return total

    def _preempt(self, pod: Obj) -> bool:
        """Push lesser pods aside, once; the room is kept until the pod is bound there."""
        if pod["metadata"]["uid"] in self._nominated:
            return True
        if not preemption.may_preempt(pod) or not self._has_lesser(pod):
            return False
        best = self._cheapest(pod)
        if best is None:
            return False
        node_name, chosen = best
        self._nominated[pod["metadata"]["uid"]] = (node_name, pod)
        self._world.patch_status(POD, pod, {"nominatedNodeName": node_name})
        for victim in chosen:
            words = f"Preempted by pod {pod['metadata']['uid']} on node {node_name}"
            self._world.events.normal(victim, "Pod", "Preempted", words, source=SOURCE)
            self._world.delete(POD, victim)
        return True

    def _has_lesser(self, pod: Obj) -> bool:
        """Is anybody bound who could be pushed aside? Most that wait are of the least important kind."""
        return any(count and rank < preemption.importance(pod) for rank, count in self._ranks.items())

    def _cheapest(self, pod: Obj) -> tuple[str, list[Obj]] | None:
        wanted = requests(pod)
        found: list[tuple[tuple[int, int], str, list[Obj]]] = []
        for node in self._candidates(pod):
            if wrong_node(pod, node):
                continue
            residents = [each for each in self._world[POD].by("node", name(node)) if not is_finished(each)]
            chosen = preemption.victims(pod, residents, self._missing(pod, wanted, node))
            if chosen:
                found.append((preemption.cost(chosen), name(node), chosen))
        return min(found, key=lambda each: each[:2])[1:] if found else None

    def _load(self, node: Obj, wanted: Amounts) -> float:
        """Least allocated first, by the scarcest thing the pod asks for."""
        has = self._offered(node)
        used = self._used[name(node)]
        return max((used[key] + amount) / has[key] for key, amount in wanted.items() if amount)

    def _bind(self, pod: Obj, node_name: str) -> None:
        self._pending.pop(key(pod), None)
        self._told.pop(pod["metadata"]["uid"], None)
        self._nominated.pop(pod["metadata"]["uid"], None)
        self._world.bind(pod, node_name)
        message = f"Successfully assigned {pod['metadata']['namespace']}/{name(pod)} to {node_name}"
        self._world.events.normal(pod, "Pod", "Scheduled", message, source=SOURCE)

    def _tell(self, pod: Obj, why: str) -> None:
        """The condition and the Event; a pod that waits on hears the news at most once a minute."""
        uid = pod["metadata"]["uid"]
        if uid in self._told:
            return
        self._told[uid] = why
        self._world.loop.later(TOLD_AGAIN_S, self._forget, uid)
        if condition(pod, "PodScheduled").get("message") == why:
            return
        self._world.patch_status(POD, pod, {"conditions": [_unscheduled(why, stamp(self._world.loop.clock.now()))]})
        self._world.events.warning(pod, "Pod", "FailedScheduling", why, source=SOURCE)

    def _forget(self, uid: str) -> None:
        if self._told.pop(uid, None) and self._pending:
            self._world.loop.soon(self.schedule)

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        if pod and is_active(pod) and not node_of(pod) and _is_ours(pod):
            self._pending[key(pod)] = pod
            self._world.loop.soon(self.schedule)
        elif was:
            self._pending.pop(key(was), None)
            self._nominated.pop(was["metadata"]["uid"], None)
        if _holds(was) != _holds(pod):
            self._book(was, -1)
            self._book(pod, 1)
            self._wake()

    def _book(self, pod: Obj | None, sign: int) -> None:
        if pod is None or not _holds(pod):
            return
        self._ranks[preemption.importance(pod)] += sign
        used = self._used[node_of(pod)]
        for resource, amount in requests(pod).items():
            used[resource] += sign * amount

    def _node_changed(self, was: Obj | None, node: Obj | None) -> None:
        if was is None or node is None or _offer(was) != _offer(node):
            for each in (was, node):
                if each:
                    self._has.pop(name(each), None)
            self._withdraw(was)
            self._wake()

    def _withdraw(self, node: Obj | None) -> None:
        """A node that changed what it offers keeps no promise: it may be cordoned, or gone."""
        promised = [uid for uid, (where, _) in self._nominated.items() if node and where == name(node)]
        for uid in promised:
            del self._nominated[uid]

    def _wake(self) -> None:
        if self._pending:
            self._world.loop.soon(self.schedule)


def _is_ours(pod: Obj) -> bool:
    """Gated pods wait outside of the queue, other schedulers place their own, and the DRA actor those with claims."""
    asked = spec(pod)
    other = asked.get("resourceClaims") or asked.get("schedulingGates")
    return not other and asked.get("schedulerName", SOURCE) == SOURCE


def wrong_node(pod: Obj, node: Obj) -> list[str]:
    """What no preemption can help, in the order of kube-scheduler's filters: a node is counted for the first alone."""
    tolerations = spec(pod).get("tolerations") or []
    if is_unschedulable(node) and not any(fits.tolerates(each, fits.UNSCHEDULABLE) for each in tolerations):
        return ["node(s) were unschedulable"]
    taint = fits.untolerated(node, tolerations)
    if taint and taint["key"] == fits.UNSCHEDULABLE["key"]:
        return ["node(s) were unschedulable"]
    if taint:
        return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
    return [] if fits.selects(spec(pod), node) else ["node(s) didn't match Pod's node affinity/selector"]


def _holds(pod: Obj | None) -> str:
    """The node on which a pod takes room; empty while it takes none."""
    return node_of(pod) if pod and not is_finished(pod) else ""


def _offer(node: Obj) -> tuple[object, ...]:
    status = node.get("status") or {}
    return (fits.taints(node), node["metadata"].get("labels"), status.get("allocatable"))


def _shape(pod: Obj) -> str:
    asked = [requests(pod), [spec(pod).get(part) for part in ("nodeSelector", "affinity", "tolerations")]]
    return json.dumps(asked, sort_keys=True)


def no_node(total: int, reasons: Counter[str]) -> str:
    """The words of kube-scheduler's FitError."""
    counted = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    hopeless = sum(count for reason, count in reasons.items() if reason.startswith("node(s)"))
    preemption = [
        f"{count} {text}"
        for count, text in (
            (total - hopeless, "No preemption victims found for incoming pod"),
            (hopeless, "Preemption is not helpful for scheduling"),
        )
        if count > 0
    ]
    tail = f"preemption: 0/{total} nodes are available: {', '.join(preemption)}."
    return f"0/{total} nodes are available: {counted}. {tail}"


def _unscheduled(why: str, at: str) -> Obj:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": why,
        "lastProbeTime": None,
        "lastTransitionTime": at,
    }
