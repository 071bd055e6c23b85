"""What an approval binds, and what the approver is shown beside it."""

from dataclasses import dataclass
from typing import Any

from edges.digests import digest
from rollouts.lifecycle import TargetState
from rollouts.models import GateAnswer, Stage, Target


@dataclass(frozen=True)
class Bundle:
    content: dict[str, Any]  # what the hash is of: the plan, the stage, its targets, and the answers as words
    hash: str
    evidence: dict[str, Any]  # the sentences and numbers behind the answers; new numbers do not void an approval


def bundle_for(stage: Stage) -> Bundle:
    """Three queries."""
    targets = Target.objects.filter(stage=stage).exclude(state=TargetState.EXCLUDED).values_list("node_name", flat=True)
    earlier = GateAnswer.objects.filter(stage__plan=stage.plan_id, stage__index__lt=stage.index, is_current=True)
    rows = list(earlier.select_related("stage"))
    content = {
        "plan": stage.plan_id,
        "plan_hash": stage.plan.content_hash,
        "stage": stage.index,
        "targets": list(targets),
        "answers": {f"{row.stage.index}:{row.gate}": row.answer for row in rows},
    }
    evidence = {
        f"{row.stage.index}:{row.gate}": {
            "because": row.because,
            "measured": row.numbers,
            "since": row.since.isoformat(),
            "at": row.at.isoformat(),
        }
        for row in rows
    }
    return Bundle(content, digest(content), evidence)
