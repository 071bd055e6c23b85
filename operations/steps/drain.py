"""Drain: evicts the pods of a node through the eviction API, with respect for budgets (Z30, Z47).

Each eviction names the pod's UID and keeps its own grace period. An eviction never becomes a deletion. At the deadline
nothing is forced: the node fails with the pod that blocks it, and a person decides.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from fleet.models import Cluster, Node, Pod, Pool
from fleet.models.pool import WorkloadClass
from gpu.resources import is_gpu_resource
from kube import client
from kube.structs import NodeSeen, PodSeen
from operations.drain_times import drain_times
from operations.eviction_pace import AT_ONCE, take_evictions
from operations.external_owner import external_owner_on
from operations.lifecycle import AT_ONCE_MOST
from operations.refusals import BadOperation
from operations.steps.base import HELD, NodeStep, NodeWork, StepResult, done_result, failed, wait
from operations.steps.evictions import ENDED, JOBS, Consent, Evictions, PodOnNode, evictions_of, next_turn
from operations.steps.options import DurationOption, NumberOption, SwitchOption
from operations.steps.owner_requests import (
    KEY,
    LONGEST_CONTACT,
    SUSPEND,
    UNBLOCK,
    answers_of,
    ask_owners,
    contacts_of,
    named_by,
    suspended_pods,
)
from operations.steps.whole_jobs import held_jobs, jobs_at
from wording.durations import spell
from wording.lists import names
from wording.numbers import are, count

BETWEEN_ROUNDS = timedelta(seconds=2)
WHILE_HELD = timedelta(seconds=15)
EMPTY_FOR = timedelta(seconds=10)  # a pod may be bound between our list and our look
DEADLINE = timedelta(minutes=30)
# By workload class of a pool (lifecycle R29); other classes have the usual one.
DEADLINES: Mapping[str, timedelta] = {
    WorkloadClass.INFERENCE: timedelta(minutes=15),
    WorkloadClass.DEVELOPMENT: timedelta(minutes=30),
    WorkloadClass.TRAINING: timedelta(hours=4),
}
BLOCKED = ("refused", "stuck", "no answer")  # states of pods that keep a drain from its end
# kubernetes, pkg/registry/core/pod/storage/eviction.go: the words of its two refusals by a budget.
BUDGET = re.compile(r"disruption budget (\S+) (?:needs|is still)", re.IGNORECASE)
ASK_FOR = timedelta(minutes=30)  # unless somebody says how long owners have
ASK_BLOCKING_AFTER = timedelta(minutes=5)  # a budget that refuses for a moment is no matter for an owner
EVICTED = "asked", "evicted, within its grace period"
SHOWN = 100  # pods in the progress of a node


class DrainStep(NodeStep):
    key: ClassVar[str] = "drain"
    options = (
        DurationOption(
            "deadline_s", "Deadline of each node, in minutes",
            "Seconds until the drain of a node times out. The node fails then, and no pod is deleted by force. Null: "
            "by the pools' workload class. Training 4 h, inference 15 min, others 30 min; the longest counts.",
            is_required=True,
        ),
        NumberOption(
            "at_once", "Nodes at once, at most", "Nodes drained at the same time, at most.", usual=AT_ONCE_MOST
        ),
        DurationOption(
            "jobs_wait_s", "Minutes until jobs are evicted; blank: 0",
            "Seconds from the start of a node's drain until jobs are evicted. Null: 0.", least_s=0,
        ),
        SwitchOption(
            "ask_owners",
            "Ask the owners to suspend or end their jobs, by notifications. Blank minutes are then 30, at most half of "
            "the deadline",
            "Ask the owners of jobs, and of pods that block the drain, by notifications. Jobs are evicted after "
            "`jobs_wait_s`, which then is 30 min or half of the deadline.", is_linked=True,
        ),
        SwitchOption(
            "unmanaged", "Evict pods without a controller, which will not start again",
            "Evict pods without a controller.",
        ),
        SwitchOption("empty_dir", "Lose the data of emptyDir volumes", "Lose the data of emptyDir volumes."),
    )  # fmt: skip
    evicts: ClassVar[bool] = True
    needs_place: ClassVar[bool] = True
    waits_for_freeze: ClassVar[bool] = True
    waits_for_others: ClassVar[bool] = True
    progress: ClassVar[str] = "For a drain: `pods` with name, state and reason, the number `left`, and the total `of`."
    template: ClassVar[str] = "operations/_drain.html"

    def suggest(self, nodes: Sequence[Node]) -> dict[str, Any]:
        return {"deadline_s": int(usual_deadline(nodes).total_seconds())}

    def complete(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
        given = dict(options)
        if not given.get("deadline_s"):
            given["deadline_s"] = self.suggest(nodes)["deadline_s"]
        if given.get("ask_owners") and not given.get("jobs_wait_s"):
            given["jobs_wait_s"] = min(int(ASK_FOR.total_seconds()), given["deadline_s"] // 2)
        if (given.get("jobs_wait_s") or 0) >= given["deadline_s"]:
            raise BadOperation(("jobs_wait_s", "Jobs are evicted before the deadline of the drain, so name less."))
        return given

    def warnings(self, nodes: Sequence[Node]) -> Iterable[str]:
        if gone := [node.name for node in nodes if node.is_ready is None]:
            yield f"{names(gone)}: the kubelet is gone. Nobody can end pods there, so the drain fails. Repair first."
        if silent := [node.name for node in nodes if node.is_ready is False]:
            yield (
                f"{names(silent)} {are(len(silent))} not Ready: the kubelet cannot end pods there, so the drain fails."
            )

    def duration(self, cluster: Cluster, nodes: Sequence[Node], *, now: datetime) -> str:
        return drain_times(cluster, nodes=len(nodes), at_once=AT_ONCE_MOST, now=now)

    def run(self, work: NodeWork) -> StepResult:
        result = self._drain(work)
        asked = {KEY: work.node.progress[KEY]} if KEY in work.node.progress else {}
        return replace(result, progress=asked | result.progress)

    def _drain(self, work: NodeWork) -> StepResult:
        deadline = deadline_of(work.operation.options)
        is_over = work.node.step_since is not None and work.clock() - work.node.step_since > deadline
        if stops := _what_stops(work.read_node(), work, is_over=is_over):
            return stops
        evictions = evictions_of(pods_on(work), _consent(work.operation.options), now=work.clock())
        if evictions.needs_consent:
            first, why = evictions.needs_consent[0]
            more = len(evictions.needs_consent) - 1
            others = f" and {count(more, 'other pod')}" if more else ""
            return failed(f"{first.title}{others} needs your consent: {why}. Start the drain again with it.")
        if evictions.is_empty:
            return _emptied(work, evictions)
        turn, suspended = next_turn(evictions.to_evict), suspended_pods(work, evictions.to_evict)
        is_asking = bool(work.operation.options.get("ask_owners")) and not is_over
        if is_asking and work.clock() < jobs_at(work):
            jobs = [pod for pod in evictions.to_evict if pod.turn == JOBS and pod.uid not in suspended]
            ask_owners(work, jobs, SUSPEND, until=jobs_at(work))
        held = held_jobs(work, [pod for pod in turn if pod.uid not in suspended], deadline=deadline)
        states = _evict(work, [pod for pod in turn if pod.uid not in held], is_dry_run=is_over)
        if is_asking and _is_long_blocked(work, deadline):
            until = (work.node.step_since or work.clock()) + deadline
            ask_owners(work, _blocking(evictions, states), UNBLOCK, until=until)
        progress = _progress(evictions, states, held, work)
        evicted = [uid for uid, state in states.items() if state == EVICTED]
        progress |= answers_of(work, evictions, suspended, evicted)
        if blocked := next((reason for state, reason in states.values() if state == "never"), ""):
            return failed(blocked, **progress)
        if is_over:
            return failed(f"Drain blocked. {_waits_for(evictions, states, held)}", **progress)
        return wait(_waits_for(evictions, states, held), again_after=BETWEEN_ROUNDS, **progress)


def _what_stops(node: NodeSeen, work: NodeWork, *, is_over: bool) -> StepResult | None:
    """Returns the result where no pod of the node may be evicted now. None: the drain goes on."""
    if not node.is_unschedulable:
        return failed("Somebody uncordoned the node, so evicted pods could return. Quarantine it again.")
    if node.ready is not None and node.ready.status == "Unknown":
        gone_at = node.ready.last_transition_time
        since = f" since {gone_at:%Y-%m-%d %H:%M} UTC" if gone_at else ""
        return failed(f"Nobody can end its pods: the kubelet is gone{since}. Repair the node.", kubelet_gone=True)
    if node.ready is None or node.ready.status != "True":
        return failed("The node is not Ready: its kubelet cannot end pods. Repair the node first.")
    external = external_owner_on(node)
    if external is None:
        return None
    if is_over:
        return failed(f"Drain blocked. {external.sentence}", **work.node.progress)
    return wait(f"{HELD}: {external.sentence}", again_after=WHILE_HELD, **work.node.progress)


def _is_long_blocked(work: NodeWork, deadline: timedelta) -> bool:
    since = work.node.blocked_since
    return since is not None and work.clock() - since >= min(ASK_BLOCKING_AFTER, deadline / 4)


def _blocking(evictions: Evictions, states: Mapping[str, tuple[str, str]]) -> Sequence[PodOnNode]:
    """Returns the pods that their owner can do something about."""
    refused = [pod for pod in evictions.to_evict if states.get(pod.uid, ("",))[0] == "refused"]
    return [*refused, *evictions.stuck]


def deadline_of(options: dict[str, Any]) -> timedelta:
    return timedelta(seconds=options["deadline_s"]) if options.get("deadline_s") else DEADLINE


def usual_deadline(nodes: Sequence[Node]) -> timedelta:
    """Returns the longest deadline of the nodes' pools: no class of workload gets less than it needs. One query."""
    classes = Pool.objects.filter(nodes__in=nodes).values_list("workload_class", flat=True).distinct().order_by()
    return max((DEADLINES.get(each, DEADLINE) for each in classes), default=DEADLINE)


def _consent(options: dict[str, Any]) -> Consent:
    return Consent(unmanaged=options.get("unmanaged", False), empty_dir=options.get("empty_dir", False))


def pods_on(work: NodeWork) -> Iterable[PodOnNode]:
    """Yields the pods on the node, as the cluster lists them now."""
    for pod in client.list_pods_on(work.connection, work.node.node_name):
        owner = pod.metadata.owner
        yield PodOnNode(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            owner_kind=owner.kind if owner else "",
            owner=owner.name if owner else "",
            phase=pod.status.phase,
            has_empty_dir=any(volume.empty_dir is not None for volume in pod.spec.volumes or ()),
            ends_at=pod.metadata.deletion_timestamp,
            contact=named_by(pod),
            has_gpus=_has_gpus(pod),
        )


def _has_gpus(pod: PodSeen) -> bool:
    limits = (each.resources.limits or {} for each in pod.spec.containers or () if each.resources)
    return bool(pod.spec.resource_claims) or any(is_gpu_resource(name) for each in limits for name in each)


def pods_of_round(work: NodeWork, pods: Sequence[PodOnNode], *, first: int = 0) -> Sequence[PodOnNode]:
    """Takes the evictions that the node may ask for now, and returns their pods, from the first one around."""
    most = min(len(pods), max(1, AT_ONCE // max(1, len(work.beside.nodes))))
    granted = take_evictions(work.operation.cluster_id, most, now=work.clock())
    first = first % len(pods) if pods else 0
    return [*pods[first:], *pods[:first]][:granted]


def _evict(work: NodeWork, pods: Sequence[PodOnNode], *, is_dry_run: bool) -> dict[str, tuple[str, str]]:
    """Asks for the evictions of one round. Returns state and reason by pod UID. A dry run tells what blocks.

    :raises TooManyRequests: when the API server throttles us
    """
    states: dict[str, tuple[str, str]] = {}
    for pod in pods_of_round(work, pods, first=work.node.progress.get("asked", 0)):
        work.guard()
        state, reason = ask_eviction(work.connection, pod, is_dry_run=is_dry_run)
        could_leave = is_dry_run and state == "asked"
        states[pod.uid] = ("waiting", "its eviction came after the deadline") if could_leave else (state, reason)
    return states


def ask_eviction(connection: client.Connection, pod: PodOnNode, *, is_dry_run: bool = False) -> tuple[str, str]:
    """Asks for one eviction. Returns the pod's state and its reason.

    :raises TooManyRequests: when the API server throttles us
    """
    try:
        client.evict_pod(connection, pod.namespace, pod.name, uid=pod.uid, is_dry_run=is_dry_run)
    except (client.Absent, client.Conflict):
        return "gone", "gone"
    except client.BudgetRefused as refusal:
        return "refused", str(refusal)
    except client.NamespaceTerminating:
        return "asked", "its namespace is being deleted"
    except (client.SeveralBudgets, client.Forbidden, client.Refused) as refusal:
        return "never", f"{pod.title} cannot be evicted: {refusal}"
    except client.InternalError as failing:
        return "no answer", str(failing)
    return EVICTED


def budget_in(reason: str) -> str:
    """Returns the budget that a refusal names. Blank: none."""
    named = BUDGET.search(reason)
    return named[1] if named else ""


def _emptied(work: NodeWork, evictions: Evictions) -> StepResult:
    """Returns DONE once the node was empty twice, `EMPTY_FOR` apart (lifecycle of a node: drained)."""
    now, requests = work.clock(), answers_of(work, evictions)
    since = work.node.progress.get("empty_since")
    if since and now - datetime.fromisoformat(since) >= EMPTY_FOR:
        return done_result(_drained_text(evictions), gone=work.node.progress.get("of", 0), **requests)
    return wait(
        "No pod is left. Checking once more.",
        again_after=EMPTY_FOR,
        empty_since=since or now.isoformat(),
        of=work.node.progress.get("of", 0),
        gpus_left=0,
        gpus_of=work.node.progress.get("gpus_of", 0),
        pods=[],
        **requests,
    )


def _drained_text(evictions: Evictions) -> str:
    """Returns the result, with the tenants' GPU pods that a drain leaves alone, such as those of DaemonSets."""
    stay = [pod for pod, _ in evictions.left_alone if pod.phase not in ENDED]
    # A row separates operands from tenants. A pod without a row is judged by the cluster's own list.
    observed = dict(Pod.objects.filter(uid__in=[pod.uid for pod in stay]).values_list("uid", "is_tenant"))
    titles = sorted(pod.title for pod in stay if observed.get(pod.uid, pod.has_gpus))
    if not titles:
        return "Drained: no pod of a tenant is left."
    return f"Drained, but GPU pods stay, since a drain leaves pods of DaemonSets alone: {names(titles)}."


def _progress(
    evictions: Evictions, states: dict[str, tuple[str, str]], held: dict[str, str], work: NodeWork
) -> dict[str, Any]:
    """Returns the pods that are left, with their states, and the most pods that were left at any time."""
    now = work.clock()
    rows = [
        *(
            (pod, *states.get(pod.uid, ("waiting", held.get(pod.uid, "waits for its turn"))))
            for pod in evictions.to_evict
        ),
        *((pod, "terminating", f"grace period ends in {spell(grace_left(pod, now))}") for pod in evictions.terminating),
        *((pod, "stuck", f"{spell(-grace_left(pod, now))} beyond its grace period") for pod in evictions.stuck),
    ]
    left = sum(state != "gone" for _, state, _ in rows)
    gpus = dict(Pod.objects.filter(uid__in=[pod.uid for pod, _, _ in rows]).values_list("uid", "gpus"))
    gpus_left = sum(gpus.get(pod.uid, 0) for pod, state, _ in rows if state != "gone")
    is_blocked = any(state in BLOCKED for _, state, _ in rows)
    is_untried = any(state == "waiting" and pod.uid not in held for pod, state, _ in rows)
    rows += ((pod, "left alone", why) for pod, why in evictions.left_alone)
    before = work.node.progress
    blocked_since = before.get("blocked_since") if is_blocked or is_untried else None
    contacts = {pod["name"]: pod["contact"] for pod in before.get("pods", ()) if "contact" in pod}
    blocking = [pod for pod, state, _ in rows[:SHOWN] if state in BLOCKED and pod.title not in contacts]
    contacts |= contacts_of(blocking, work)
    pods = [_pod_row(pod, state, reason, contacts) for pod, state, reason in rows[:SHOWN]]
    return {
        "pods": pods,
        "left": left,
        "of": max(left, before.get("of", 0)),
        "gpus_left": gpus_left,
        "gpus_of": max(gpus_left, before.get("gpus_of", 0)),
        "blocked_since": blocked_since or (now.isoformat() if is_blocked else None),
        "fails_at": ((work.node.step_since or now) + deadline_of(work.operation.options)).isoformat(),
        "asked": before.get("asked", 0) + len(states),
        "turn": min((pod.turn for pod in evictions.to_evict), default=JOBS),
    }


def _pod_row(pod: PodOnNode, state: str, reason: str, contacts: Mapping[str, str]) -> dict[str, str]:
    """Returns the pod's row. A pod that blocks has a contact in it, unless its namespace was not read."""
    row = {"name": pod.title, "owner": pod.job, "state": state, "reason": reason}
    if state not in BLOCKED:
        return row
    row |= {"uid": pod.uid, "budget": budget_in(reason) if state == "refused" else ""}
    return row | ({"contact": contacts[pod.title][:LONGEST_CONTACT]} if pod.title in contacts else {})


def grace_left(pod: PodOnNode, now: datetime) -> timedelta:
    return pod.ends_at - now if pod.ends_at else timedelta(0)


def _waits_for(evictions: Evictions, states: dict[str, tuple[str, str]], held: dict[str, str]) -> str:
    """Returns what the drain waits for: the pod that blocks it first."""
    refused = [(pod, states[pod.uid][1]) for pod in evictions.to_evict if states.get(pod.uid, ("",))[0] == "refused"]
    if refused:
        pod, reason = refused[0]
        more = f" {count(len(refused) - 1, 'other pod')} too." if len(refused) > 1 else ""
        return f"The budget of {pod.title} prevents its eviction: {reason}.{more}".replace("..", ".")
    unanswered = ((pod, *states[pod.uid]) for pod in evictions.to_evict if pod.uid in states)
    if failing := next(((pod, why) for pod, state, why in unanswered if state == "no answer"), None):
        return f"The API server did not answer for {failing[0].title}, and is tried again: {failing[1]}"
    if evictions.stuck:
        listed = names([pod.title for pod in evictions.stuck])
        return (
            f"{listed} did not end within the grace period. Check for finalizers and for volumes that do not unmount."
        )
    left = len(evictions.to_evict) + len(evictions.terminating)
    first = next((pod for pod in evictions.to_evict if pod.uid in held), None)
    return f"{count(left, 'pod')} left." + (f" {first.title} waits: {held[first.uid]}." if first else "")
