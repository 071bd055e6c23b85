from rollouts.models.approval import Approval
from rollouts.models.break_glass import BreakGlass
from rollouts.models.command import Command, Verb
from rollouts.models.cordon import Cordon
from rollouts.models.disruption import Disruption, DomainBudget
from rollouts.models.followed import FollowedAnswer, FollowedNode, FollowedRollout, Rollout
from rollouts.models.freeze import Freeze
from rollouts.models.gate_answer import GateAnswer
from rollouts.models.hold import Hold
from rollouts.models.image_pull import ImagePull, PullJob
from rollouts.models.live_check import LiveCheck
from rollouts.models.maintenance_window import MaintenanceWindow
from rollouts.models.opt_out import OptOut
from rollouts.models.pending_command import PendingCommand
from rollouts.models.plan import Plan
from rollouts.models.plan_event import PlanEvent
from rollouts.models.proof_job import ProofJob
from rollouts.models.shown_bundle import ShownBundle
from rollouts.models.stage import Stage, StageKind
from rollouts.models.target import Target
from rollouts.models.wave import Wave
from rollouts.models.writer_lease import WriterLease

__all__ = [
    "Approval",
    "BreakGlass",
    "Command",
    "Cordon",
    "Disruption",
    "DomainBudget",
    "FollowedAnswer",
    "FollowedNode",
    "FollowedRollout",
    "Freeze",
    "GateAnswer",
    "Hold",
    "ImagePull",
    "LiveCheck",
    "MaintenanceWindow",
    "OptOut",
    "PendingCommand",
    "Plan",
    "PlanEvent",
    "ProofJob",
    "PullJob",
    "Rollout",
    "ShownBundle",
    "Stage",
    "StageKind",
    "Target",
    "Verb",
    "Wave",
    "WriterLease",
]
