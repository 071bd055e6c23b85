from rollouts.models.answer import Answer
from rollouts.models.approval import Approval
from rollouts.models.claim import Claim
from rollouts.models.command import Command, Verb
from rollouts.models.hold import Hold
from rollouts.models.plan import Plan
from rollouts.models.plan_event import PlanEvent
from rollouts.models.stage import Stage, StageKind
from rollouts.models.target import Target
from rollouts.models.wave import Wave

__all__ = [
    "Answer",
    "Approval",
    "Claim",
    "Command",
    "Hold",
    "Plan",
    "PlanEvent",
    "Stage",
    "StageKind",
    "Target",
    "Verb",
    "Wave",
]
