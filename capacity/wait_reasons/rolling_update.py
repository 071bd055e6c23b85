"""A rolling update that cannot go on: older pods keep the GPUs until the new pod is ready. Pure.

Without `maxUnavailable` a Deployment of up to three pods keeps all of them until a new one is ready, since 25 % is
rounded down (kubernetes.io/docs/concepts/workloads/controllers/deployment, "Rolling Update Deployment").
"""

from dataclasses import dataclass, replace

from capacity.wait_reasons.answers import Actor, Change, DecidingKind, PendingExplanation
from wording.numbers import count, either
from wording.reports import fit

BY_ROOM = frozenset({"no_room", "fragmented"})


@dataclass(frozen=True)
class OlderPods:
    """Pods of an older template of the Deployment, each with enough GPUs for the waiting pod."""

    deployment: str
    number: int


def explain_update(found: PendingExplanation, older: OlderPods | None) -> PendingExplanation:
    """Returns the reason with the older pods first, where the pod lacks the room that one of them has."""
    if older is None or found.key not in BY_ROOM:
        return found
    name, keeps = older.deployment, either(older.number, "keeps its GPUs", "keep their GPUs")
    return replace(
        found,
        key="rolling_update",
        title=fit("Older pods of Deployment {} hold the GPUs that it needs", name),
        summary=fit("{} {}", count(older.number, "older pod"), f"{keeps} until this pod is ready."),
        decided_by=name,
        decided_kind=DecidingKind.DEPLOYMENT,
        changes=[
            Change(f"Set maxSurge to 0 and maxUnavailable to 1 in the strategy of Deployment {name}.", Actor.OWNER),
            Change(f"Delete an older pod of Deployment {name}, if a gap in service is acceptable.", Actor.OWNER),
            *(change for change in found.changes if change.actor is not Actor.NOBODY),
        ],
    )
