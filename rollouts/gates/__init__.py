"""The gates that a plan may have. To add one, add a file here and a line below."""

from rollouts.gates.allocatable_restored import AllocatableRestored
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.compatibility import Compatibility
from rollouts.gates.driver_version import DriverVersion
from rollouts.gates.exposure import Exposure
from rollouts.gates.failure_budget import FailureBudget
from rollouts.gates.headroom import Headroom
from rollouts.gates.mig_state import MigState
from rollouts.gates.no_foreign_change import NoForeignChange
from rollouts.gates.operands_ready import OperandsReady
from rollouts.gates.soak import Soak
from rollouts.gates.test_job import TestJobGate
from rollouts.gates.validator_passed import ValidatorPassed
from rollouts.gates.window import Window
from rollouts.gates.workloads_ready import WorkloadsReady

GATES = {
    gate.key: gate
    for gate in (
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
        NoForeignChange,
        FailureBudget,
        Soak,
    )
}
