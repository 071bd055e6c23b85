"""The bundle: what an approval binds, and what is shown beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from edges.digests import digest
from rollouts.gates.approval import ApprovalGate
from rollouts.lifecycle import TargetState
from rollouts.models import GateAnswer, GateOverride, Stage, Target
from rollouts.models.gate_answer import BLIND


@dataclass(frozen=True)
class Bundle:
    # Content of the hash: the plan, the stage, its targets, the gate answers as text, and the advisory gates with their
    # reasons.
    content: dict[str, Any]
    hash: str
    evidence: dict[str, Any]  # the sentences and numbers behind the answers; new numbers do not void an approval
    nodes: Mapping[str, Sequence[str]]  # that an answer is about, by key of `evidence`; not stored with an approval

    def unasked_since(self, *, now: datetime) -> datetime | None:
        """Returns when a gate was last evaluated, if that is too long ago; None otherwise.

        Only the last stage's gates are still evaluated.
        """
        last = max((datetime.fromisoformat(one["at"]) for one in self.evidence.values()), default=now)
        return last if now - last > BLIND else None


def bundle_for(stage: Stage) -> Bundle:
    """Returns the bundle, with four queries. Advisory results are shown and never void an approval."""
    targets = Target.objects.filter(stage=stage).exclude(state=TargetState.EXCLUDED).values_list("node_name", flat=True)
    earlier = GateAnswer.objects.filter(stage__plan=stage.plan_id, stage__index__lt=stage.index, is_current=True)
    rows = list(earlier.select_related("stage"))
    content: dict[str, Any] = {
        "plan": stage.plan_id,
        "plan_hash": stage.plan.content_hash,
        "stage": stage.index,
        "targets": list(targets),
        "answers": {f"{row.stage.index}:{row.gate}": row.answer for row in rows if not row.is_advisory},
    }
    if advisory := {gate.key: gate.reason for gate in stage.gates if gate.advisory}:
        content["advisory"] = advisory
    if overrides := _overrides(stage):
        content["overrides"] = overrides
    evidence = {
        f"{row.stage.index}:{row.gate}": {
            "answer": row.answer,
            "is_advisory": row.is_advisory,
            **row.report,
            "since": row.since.isoformat(),
            "at": row.at.isoformat(),
        }
        for row in rows
    }
    nodes = {f"{row.stage.index}:{row.gate}": row.nodes for row in rows}
    return Bundle(content, digest(content), evidence, nodes)


def _overrides(stage: Stage) -> dict[str, dict[str, str]]:
    """Returns the overrides so far with their last reasons, without those of the approval itself."""
    rows = GateOverride.objects.filter(stage__plan=stage.plan_id, stage__index__lte=stage.index).order_by("pk")
    own = rows.exclude(stage=stage, gate=ApprovalGate.key).select_related("stage")
    return {f"{each.stage.index}:{each.gate}": {"by": each.by, "reason": each.reason} for each in own}
