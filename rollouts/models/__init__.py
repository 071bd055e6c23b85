from rollouts.models.approval import Approval, GateOverride, ShownBundle
from rollouts.models.command import Command, PendingCommand, Verb
from rollouts.models.cordon import Cordon, Exclusion
from rollouts.models.external_rollout import ExternalGateAnswer, ExternalRollout, ExternalRolloutNode, Rollout
from rollouts.models.gate_answer import GateAnswer
from rollouts.models.gate_look import GateLook
from rollouts.models.hold import Hold
from rollouts.models.image_pull import PlanPull
from rollouts.models.live_check import LiveCheck
from rollouts.models.maintenance_window import MaintenanceWindow
from rollouts.models.plan import Plan
from rollouts.models.plan_event import PlanEvent
from rollouts.models.pool_gates import PoolGates
from rollouts.models.rehearsal import Rehearsal
from rollouts.models.service_level_sample import ServiceLevelSample
from rollouts.models.stage import Stage, StageKind
from rollouts.models.target import Target, Wave
from rollouts.models.test_job import TestJob
