"""The reason of a pod that waits in a queue in front of the scheduler: Kueue, Volcano or KAI. Pure."""

from capacity.wait_reasons.answers import Actor, Change, DecidingKind, PendingExplanation
from capacity.wait_reasons.queue_place import QueuePlace
from health.stack.causes import Cause, Weight, cause_in_words
from wording.lists import names
from wording.reports import LONGEST_SUMMARY, LONGEST_TITLE, clip, fit


def queued_reason(place: QueuePlace) -> PendingExplanation:
    """Returns the reason of a pod whose workload waits in a queue."""
    kind = "Workload" if place.system == "Kueue" else "PodGroup"
    decided_by = place.name
    cause = _cause_of(place)
    if not place.is_active:
        title, decided_by = f"{kind} {place.workload} is deactivated", f"{kind} {place.workload}"
    elif place.trouble:
        title = f"{_upper(place.name)} admits nothing"
    elif cause:
        title = cause.title
    elif place.is_stuck:
        title = f"{_upper(place.name)} never admits this workload as it is"
    elif place.is_reserved:
        title = "Has its quota, and waits for an admission check"
    elif place.position:
        title = f"Number {place.position} of {place.length} in {place.name}"
    else:
        title = f"Waits in {place.name}"
    summary = place.trouble or place.message or place.reason or "The queue gives no reason."
    summary = cause.summary if cause else summary
    return PendingExplanation(
        "queue_refuses" if place.is_stuck or (cause and cause.weight is Weight.WRONG) else "queued",
        fit("{}", title, longest=LONGEST_TITLE),
        clip(summary, LONGEST_SUMMARY),
        decided_by=decided_by,
        decided_kind=DecidingKind.QUEUE,
        changes=changes_of(cause) if cause else _changes(place, kind),
        queue=place,
    )


def _cause_of(place: QueuePlace) -> Cause | None:
    """Returns the known cause that the queue's message names, where its place and its quotas tell less."""
    is_told = not place.is_active or place.trouble or place.is_too_large or place.uncovered or place.is_reserved
    return None if is_told else cause_in_words(place.message)


def changes_of(cause: Cause) -> list[Change]:
    return [Change(step, Actor.ADMIN) for step in cause.steps]


def _changes(place: QueuePlace, kind: str) -> list[Change]:
    namespace, _, name = place.workload.partition("/")
    if not place.is_active:
        return [Change(f"Activate it: set spec.active of Workload {name} in {namespace} to true.", Actor.OWNER)]
    if place.trouble:
        return [Change(f"Repair or resume {place.name}. Its condition Active has the reason.", Actor.ADMIN)]
    if place.is_too_large:
        return [
            Change("Request less: the queue's quota with borrowing is smaller.", Actor.OWNER),
            Change(f"Raise the quota of {place.name}, or its borrowing limit.", Actor.ADMIN),
        ]
    if place.uncovered:
        its = names(place.uncovered)
        return [
            Change(f"Add {its} to the covered resources of {place.name}, with a quota.", Actor.ADMIN),
            Change(f"Remove the request for {its}, or submit to another LocalQueue.", Actor.OWNER),
        ]
    if place.is_stuck:
        return [Change(f"Correct what {place.system} names, in the {kind} or in {place.name}.", Actor.ADMIN)]
    if place.is_reserved:
        return [Change("Check the admission checks of the Workload: kubectl describe workload.", Actor.ADMIN)]
    found = [Change("Wait until workloads with quota end.", Actor.NOBODY)]
    if place.head:
        found.append(Change(f"{place.head} is first in this strict queue and holds back all others.", Actor.ADMIN))
    short = [quota.resource for quota in place.quotas if not quota.free]
    if short:
        found.append(Change(f"Raise the quota of {place.name} for {names(short)}.", Actor.ADMIN))
    if place.system == "Kueue":
        found.append(Change("Submit to a LocalQueue with free quota, or with a higher priority class.", Actor.OWNER))
    return found


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
