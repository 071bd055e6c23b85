"""A rolling update that cannot go on: older pods keep the GPUs until the new pod is ready. Pure.

A Deployment of up to three pods ends no older pod before: 25 % `maxUnavailable`, its default, is rounded down to 0
(kubernetes.io/docs/concepts/workloads/controllers/deployment, "Rolling Update Deployment").
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from capacity.wait_reasons.answers import Actor, Change, DecidingKind, PendingExplanation
from capacity.wait_reasons.obstacles import Obstacles
from wording.numbers import count, either
from wording.reports import fit

BY_ROOM = frozenset({"no_room", "fragmented"})


@dataclass(frozen=True)
class OlderPods:
    """Pods of an older template of the Deployment, each with enough GPUs for the waiting pod."""

    deployment: str
    number: int
    nodes: Collection[int]  # keys of their nodes


def explain_update(found: PendingExplanation, older: OlderPods | None, obstacles: Obstacles) -> PendingExplanation:
    """Returns the reason with the older pods first, where the pod lacks only the room that one of them has."""
    if older is None or found.key not in BY_ROOM:
        return found
    if not obstacles.index.set_of_keys(older.nodes) & obstacles.candidates:
        return found
    name, keeps = older.deployment, either(older.number, "keeps its GPUs", "keep their GPUs")
    summary = f"{count(older.number, 'older pod')} {keeps} until this pod is ready, unless maxUnavailable allows more."
    return replace(
        found,
        key="rolling_update",
        title=fit("Older pods of Deployment {} hold the GPUs that it needs", name),
        summary=summary,
        decided_by=name,
        decided_kind=DecidingKind.DEPLOYMENT,
        changes=[
            Change(f"Set maxUnavailable to 1 and maxSurge to 0 in the strategy of Deployment {name}.", Actor.OWNER),
            *found.changes,
        ],
    )
