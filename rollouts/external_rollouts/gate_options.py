"""The gates that evaluate external rollouts with their options, and why the others do not. Pure."""

from collections.abc import Mapping

from rollouts.gates.allocatable_restored import AllocatableRestored
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import Gate
from rollouts.gates.compatibility import Compatibility
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
from rollouts.gates.slo import Slo
from rollouts.gates.soak import Soak
from rollouts.gates.telemetry_fresh import TelemetryFresh
from rollouts.gates.test_job import TestJobGate
from rollouts.gates.thermal import Thermal
from rollouts.gates.throttling import Throttling
from rollouts.gates.validator_passed import ValidatorPassed
from rollouts.gates.window import Window
from rollouts.gates.workloads_ready import WorkloadsReady
from rollouts.gates.xid import Xid

# In the order of the table of gates; each as a plan has it that sets nothing.
ASKED: tuple[Gate, ...] = (
    DriverVersion(),
    OperandsReady(),
    ValidatorPassed(),
    AllocatableRestored(),
    MigState(),
    WorkloadsReady(),
    FailureBudget(),
    Soak(),
)

LEFT_OUT: Mapping[str, str] = {
    ApprovalGate.key: "Who drives it asks nobody here.",
    Compatibility.key: "It is asked before the first node goes; what does not go together is a finding of its cluster.",
    Window.key: "Maintenance windows bind plans, and nobody else keeps to them.",
    Headroom.key: "It is asked about the next wave, and which nodes go next is not ours to know.",
    TestJobGate.key: "A test Job is a write, and nothing is written to a cluster that is only followed.",
    Exposure.key: "How long tenants must have worked before it goes on is a promise of plans, and of nobody else.",
    **dict.fromkeys(
        (TelemetryFresh.key, NewFindings.key, Xid.key, Ecc.key, Thermal.key, Throttling.key, Nvlink.key),
        "The findings of its nodes are open and notified without it.",
    ),
    Slo.key: "It is a promise of a plan about one service.",
    NoForeignChange.key: "All of it is a change by others.",
}
