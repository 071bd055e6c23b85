"""The bundles that were shown to approvers, and what has changed since. Used by pages and REST."""

from collections.abc import Sequence
from datetime import datetime

from fleet.retention import delete
from rollouts.approvals.bundle_changes import changes
from rollouts.approvals.bundles import Bundle, bundle_for
from rollouts.approvals.decisions import why_no_decision
from rollouts.lifecycle import StageState
from rollouts.models import ShownBundle, Stage

MOST_SAID = 5
UNKNOWN = "The version that you saw is unknown, so its changes cannot be listed."


def show(stage: Stage, *, now: datetime) -> Bundle:
    """Returns the bundle, stored under its hash if somebody can decide on it."""
    bundle = bundle_for(stage)
    if not why_no_decision(stage):
        row = ShownBundle(stage=stage, hash=bundle.hash, content=bundle.content, at=now)
        ShownBundle.objects.bulk_create([row], ignore_conflicts=True)
    return bundle


def changed_since(stage: Stage, shown_hash: str, bundle: Bundle) -> list[str]:
    """Returns a sentence for each difference from the shown bundle. Two queries if there are any."""
    if shown_hash == bundle.hash:
        return []
    shown = ShownBundle.objects.filter(stage=stage, hash=shown_hash).first()
    if shown is None:
        return [UNKNOWN]
    return changes(shown.content, bundle.content, dict(stage.plan.stages.values_list("index", "name")))


def tidy(**_: datetime) -> int:
    """Deletes shown bundles of closed stages, and returns how many."""
    return delete(ShownBundle.objects.exclude(stage__state=StageState.OPENING))


def in_one(sentences: Sequence[str]) -> str:
    """Returns as many sentences as fit on a line."""
    left = len(sentences) - MOST_SAID
    return " ".join([*sentences[:MOST_SAID], *([f"And {left} more."] if left > 0 else [])])
