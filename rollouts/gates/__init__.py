"""The gates that a plan may have. To add one, add a file here and a line below."""

from collections.abc import Mapping

from rollouts.gates.allocatable_restored import AllocatableRestored
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import Gate
from rollouts.gates.compatibility import Compatibility
from rollouts.gates.drift import Drift
from rollouts.gates.driver_version import DriverVersion
from rollouts.gates.ecc import Ecc
from rollouts.gates.exposure import Exposure
from rollouts.gates.failure_budget import FailureBudget
from rollouts.gates.findings import NewFindings
from rollouts.gates.headroom import Headroom
from rollouts.gates.mig_state import MigState
from rollouts.gates.no_foreign_change import NoForeignChange
from rollouts.gates.nvlink import Nvlink
from rollouts.gates.operands_ready import OperandsReady
from rollouts.gates.slo import SLOS
from rollouts.gates.soak import Soak
from rollouts.gates.telemetry_fresh import TelemetryFresh
from rollouts.gates.test_job import TestJobGate
from rollouts.gates.thermal import Thermal
from rollouts.gates.throttling import Throttling
from rollouts.gates.validator_passed import ValidatorPassed
from rollouts.gates.window import Window
from rollouts.gates.workloads_ready import WorkloadsReady
from rollouts.gates.xid import Xid

_ALL: tuple[type[Gate], ...] = (
    ApprovalGate,
    Compatibility,
    Window,
    Headroom,
    DriverVersion,
    OperandsReady,
    ValidatorPassed,
    AllocatableRestored,
    MigState,
    TestJobGate,
    WorkloadsReady,
    Exposure,
    TelemetryFresh,
    NewFindings,
    Xid,
    Ecc,
    Thermal,
    Throttling,
    Nvlink,
    Drift,
    *SLOS,
    NoForeignChange,
    FailureBudget,
    Soak,
)
GATES: Mapping[str, type[Gate]] = {gate.key: gate for gate in _ALL}
