"""The causes of failed nodes of a plan: recorded with the move to failed, and shown by the gate that halts."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from fleet.models import Node
from gpu.upgrade_controller import UPGRADE_FAILED
from health.evaluation.upgrade_blockers import find_blocker
from rollouts.gates.base import GAVE_UP
from rollouts.lifecycle import TargetState
from rollouts.models import Stage, Target
from rollouts.queries.completion import causes_found

ASKED_WHY = 20  # nodes a round: ten queries each
UNTOUCHED = frozenset({TargetState.HELD, TargetState.EXCLUDED, TargetState.FAILED})


def causes_of_failures(stages: Iterable[Stage], nodes: Mapping[str, Node], *, now: datetime) -> dict[str, str]:
    """Returns the missing causes of failed nodes by node UID.

    For nodes that failed since the last round it reads the rows of now; for earlier ones without a cause it reads
    findings. No query without failed nodes.
    """
    targets = [target for stage in stages for target in stage.targets.all()]
    fresh = [target.node_uid for target in targets if _has_just_failed(target, nodes)][:ASKED_WHY]
    rows = Node.objects.filter(pk__in=[nodes[uid].pk for uid in fresh]) if fresh else ()
    found = {row.uid: " ".join(find_blocker(row, now=now).causes) for row in rows}
    unknown = [target for target in targets if target.state == TargetState.FAILED and target.reason == GAVE_UP]
    if unknown:
        found |= causes_found(target.node_uid for target in unknown)
    return {uid: reason for uid, reason in found.items() if reason}


def _has_just_failed(target: Target, nodes: Mapping[str, Node]) -> bool:
    node = nodes.get(target.node_uid)
    return node is not None and node.upgrade_state == UPGRADE_FAILED and target.state not in UNTOUCHED
