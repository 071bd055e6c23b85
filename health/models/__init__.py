"""Findings, acts on them, crash logs of operands, and telemetry sources."""

from health.models.crash_log import CrashLog
from health.models.evaluation_run import EvaluationRun
from health.models.finding import Finding, FindingAct
from health.models.gpu_hour import GpuHour, GpuMinuteBlock
from health.models.mute import Mute
from health.models.pool_limits import PoolLimits
from health.models.rule_shadow import RuleShadow
from health.models.saved_view import SavedView
from health.models.telemetry_source import SourceState, TelemetrySource, TelemetryTrial, TrialState
from health.models.usage import NamespaceUsage, OwnerUsage, UsageDay, WorkloadActivity
