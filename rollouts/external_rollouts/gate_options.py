"""The gates that evaluate external rollouts with their options, and why the others do not. Pure."""

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

# In the order of the table of gates, with default options.
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
    ApprovalGate.key: "The owner of the rollout asks for no approval here.",
    Compatibility.key: (
        "This gate is evaluated before the first node changes. Unsupported versions are a finding of the cluster."
    ),
    Window.key: "Maintenance windows bind only plans.",
    Headroom.key: "This gate evaluates the next wave. The next nodes of this rollout are unknown.",
    TestJobGate.key: "A test Job is a write. Quarterdeck writes nothing to a cluster that it only follows.",
    Exposure.key: "Only plans wait until tenants have worked on the changed nodes.",
    **dict.fromkeys(
        (TelemetryFresh.key, NewFindings.key, Xid.key, Ecc.key, Thermal.key, Throttling.key, Nvlink.key),
        "Findings of the nodes are opened and notified without this gate.",
    ),
    Drift.key: "Only plans compare nodes for hours after their change.",
    **dict.fromkeys((gate.key for gate in SLOS), "A plan defines this service level for one service."),
    NoForeignChange.key: "Every change of this rollout is a change by others.",
}
