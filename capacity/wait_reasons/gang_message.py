"""The words of a scheduler of gangs or queues about a pod, where it counts no nodes. Pure.

KAI, pkg/scheduler/api and pkg/scheduler/plugins/proportion; Volcano, pkg/scheduler/api and plugins/gang; YuniKorn,
pkg/scheduler/objects. The texts are those of /kai-scheduler #577 and #2209, volcano #4479. The gangs of kube-scheduler:
kubernetes, pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go from 1.35 on. It reports no pod that waits
for others of its gang (kubernetes/kubernetes#141900).
"""

import re
from collections.abc import Callable, Sequence

from capacity.wait_reasons.answers import Actor, Change, DecidingKind, PendingExplanation
from capacity.wait_reasons.requirements import USUAL_SCHEDULER, WaitingPod
from capacity.wait_reasons.scheduler_message import SchedulerVerdict
from wording.reports import LONGEST_SUMMARY, LONGEST_TITLE, clip, fit

GANG_OF_KAI = re.compile(
    r"Resources were found for (\d+) pods while (\d+) are required for gang scheduling\.?(.*)", re.DOTALL
)
GANG_OF_VOLCANO = re.compile(r"(\d+)/(\d+) tasks in gang unschedulable: (.*)", re.DOTALL)
OVER_QUOTA = re.compile(
    r"over quota\. Workload requested (\d+(?:\.\d+)?) (\S+), but (\S+) quota is (\d+(?:\.\d+)?) \S+, "
    r"while (\d+(?:\.\d+)?) \S+ are already"
)
OVER_LIMIT = re.compile(r"Limit is ([\d.]+) (\S+), currently ([\d.]+) \S+ allocated and workload requested ([\d.]+)")
NOT_ALL = re.compile(r"Waiting for (\d+) pods?, currently (\d+) exist")
NO_QUOTA = re.compile(
    r"(?:queue resource quota insufficient|Not enough (?:queue|user) quota|does not fit in queue).*", re.DOTALL
)
TOO_FEW = re.compile(r"waiting for minCount pods from a gang")
NO_GROUP = re.compile(
    r"waiting for pods's (?:pod group|workload) \"([^\"]{1,253})\"|"
    r"pod group \"([^\"]{1,253})\" doesn't exist for a workload"
)
SAME = 1e-6  # GPUs: fractions are compared as floats


def reason_of_gang(pod: WaitingPod, verdict: SchedulerVerdict | None) -> PendingExplanation | None:
    """Returns the reason of a pod whose gang or queue keeps it waiting. None: its scheduler names no such reason."""
    if verdict is None:
        return None
    text = pod.message
    if found := NO_GROUP.search(text):
        return _without_group(found[1] or found[2])
    if TOO_FEW.search(text):
        return incomplete_gang(pod)
    if pod.scheduler == USUAL_SCHEDULER:
        return None
    return next((read(found) for pattern, read in MESSAGES if (found := pattern.search(text))), None)


def incomplete_gang(pod: WaitingPod, *, is_reported: bool = True) -> PendingExplanation:
    """Returns the reason of a pod whose gang has fewer pods than it needs, or may have where nothing is reported."""
    group = pod.pod_group or "its PodGroup"
    title = "Waits for other pods of its gang"
    return _waits(
        title if is_reported else "The scheduler has not reported: its gang may lack pods",
        f"The scheduler ignores the pods of {group} until minCount of them exist.",
        DecidingKind.POD_RULE, group,
        Change("Find why the other pods do not exist: quota, webhook or a failing controller.", Actor.OWNER),
        Change("Compare minCount of the PodGroup with the pods of its workload.", Actor.OWNER),
    )  # fmt: skip


def _without_group(name: str) -> PendingExplanation:
    return _waits(
        fit("PodGroup {} does not exist", name), "The scheduler ignores its pods until it is created.",
        DecidingKind.POD_RULE, name, Change("Create it, or correct its name in the pod template.", Actor.OWNER),
    )  # fmt: skip


def _gang(found: re.Match[str]) -> PendingExplanation:
    placed, needed, rest = found[1], found[2], found[3]
    because = rest.partition("due to:")[2].strip() or rest.strip() or "The scheduler names no reason."
    return _waits(
        f"Only {placed} of {needed} pods of the gang can be placed", because, DecidingKind.POD_RULE, "gang scheduling",
        Change("Find what the other pods lack on the nodes that the message counts.", Actor.ADMIN),
        Change("Start with fewer pods, if the program can.", Actor.OWNER),
    )  # fmt: skip


def _group(found: re.Match[str]) -> PendingExplanation:
    waiting, tasks, because = int(found[1]), int(found[2]), found[3]
    if not tasks:
        return _waits(
            "The queue has not admitted the PodGroup", f"No pod of it exists yet. {because}",
            DecidingKind.QUEUE, "PodGroup",
            Change("Check capability and deserved of its queue: kubectl describe podgroup.", Actor.ADMIN),
            Change("Use a queue with free room.", Actor.OWNER),
        )  # fmt: skip
    return _waits(
        f"{waiting} of {tasks} pods of the gang cannot be placed", because, DecidingKind.POD_RULE, "gang scheduling",
        Change("Wait until other pods end. The gang starts as a whole.", Actor.NOBODY),
    )  # fmt: skip


def _over_quota(found: re.Match[str]) -> PendingExplanation:
    asked, unit, queue, quota, used = float(found[1]), found[2], found[3], float(found[4]), float(found[5])
    summary = f"It requests {found[1]} {unit}. {found[5]} of {found[4]} are allocated to pods that cannot be preempted."
    if asked + used <= quota + SAME:
        summary = (
            f"{found[5]} + {found[1]} is within {found[4]} {unit}. The scheduler rounds: raise the quota a little."
        )
    return _waits(
        f"Quota of queue {queue} is used up", summary, DecidingKind.QUEUE, queue,
        Change(f"Raise the quota of queue {queue}.", Actor.ADMIN),
        Change("Let the workload be preemptible: it may then go over the quota.", Actor.OWNER),
    )  # fmt: skip


def _over_limit(found: re.Match[str]) -> PendingExplanation:
    summary = f"It requests {found[4]} {found[2]}. {found[3]} of {found[1]} are allocated."
    return _waits(
        "Limit of its queue is reached", summary, DecidingKind.QUEUE, "queue limit",
        Change("Wait until pods of the queue end.", Actor.NOBODY), Change("Raise the limit of the queue.", Actor.ADMIN),
    )  # fmt: skip


def _not_all(found: re.Match[str]) -> PendingExplanation:
    return _waits(
        "Gang waits for pods that do not exist yet", f"{found[2]} of {found[1]} pods exist.", DecidingKind.POD_RULE,
        "gang scheduling",
        Change("Find why its owner does not create them: quota, webhook or a failing controller.", Actor.OWNER),
    )  # fmt: skip


def _no_quota(found: re.Match[str]) -> PendingExplanation:
    return _waits(
        "Its queue has no quota left", found[0], DecidingKind.QUEUE, "queue quota",
        Change("Wait until workloads of the queue end.", Actor.NOBODY),
        Change("Raise the quota of the queue, or use another queue.", Actor.ADMIN),
    )  # fmt: skip


def _waits(title: str, summary: str, kind: DecidingKind, decided_by: str, *changes: Change) -> PendingExplanation:
    return PendingExplanation(
        "gang" if kind is DecidingKind.POD_RULE else "queue_quota",
        fit("{}", title, longest=LONGEST_TITLE), clip(summary, LONGEST_SUMMARY),
        decided_by=decided_by, decided_kind=kind, changes=changes,
    )  # fmt: skip


MESSAGES: Sequence[tuple[re.Pattern[str], Callable[[re.Match[str]], PendingExplanation]]] = (
    (GANG_OF_KAI, _gang), (NOT_ALL, _not_all), (OVER_QUOTA, _over_quota), (OVER_LIMIT, _over_limit),
    (GANG_OF_VOLCANO, _group), (NO_QUOTA, _no_quota),
)  # fmt: skip
