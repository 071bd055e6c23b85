"""The plots of the gates that judge each changed node: how many nodes do not pass, over time."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from rollouts.gates.base import TO_COME, Answer, Gate, When
from rollouts.gates.drift import Drift
from rollouts.gates.exposure import Exposure
from rollouts.gates.failure_budget import FailureBudget
from rollouts.gates.findings import NewFindings
from rollouts.gates.no_foreign_change import NoForeignChange
from rollouts.gates.slo import Slo
from rollouts.gates.soak import Soak
from rollouts.gates.test_job import TestJobGate
from rollouts.models import GateAnswer, Stage
from rollouts.queries.plot_values import GatePlot, Point

MOST_ROWS = 2000  # of the history of a stage's gates
NOT_BY_NODE = (Drift, Exposure, NoForeignChange, Slo, Soak)


def node_plots(stage: Stage, changes: Sequence[datetime]) -> Iterator[GatePlot]:
    """Yields a plot for each gate that names the nodes which do not pass. One query."""
    gates = [gate for gate in stage.gates if _judges_nodes(gate)]
    history: dict[str, list[GateAnswer]] = defaultdict(list)
    rows = GateAnswer.objects.filter(stage=stage, gate__in=[gate.key for gate in gates]).defer("evidence", "steps")
    for row in rows.order_by("-pk")[:MOST_ROWS]:
        history[row.gate].append(row)
    for gate in gates:
        points = list(_points(sorted(history[gate.key], key=lambda row: row.at)))
        most = gate.tolerate if isinstance(gate, FailureBudget) else 0
        yield GatePlot(
            gate,
            stage,
            "nodes",
            "Nodes that do not pass",
            points,
            [("At most", most)],
            changes=changes,
            newest_at=points[-1].at if points else None,
            why_empty="" if points else "No node was evaluated yet.",
        )


def _judges_nodes(gate: Gate) -> bool:
    measures_gpus = isinstance(gate, NewFindings) and gate.measured_by is not None
    measures_jobs = isinstance(gate, TestJobGate) and bool(gate.rules)
    return gate.when is When.THROUGH and not isinstance(gate, NOT_BY_NODE) and not measures_gpus and not measures_jobs


def _points(rows: Sequence[GateAnswer]) -> Iterator[Point]:
    """Yields the begin and the end of each answer. An answer about no node is no sample, unless it is a pass."""
    before: datetime | None = None
    for row in rows:
        begin = row.since if before is None else max(row.since, before)
        before = row.at
        if row.nodes or row.answer == Answer.PASS or row.cause == TO_COME:
            yield from (Point(at, float(len(row.nodes))) for at in sorted({begin, row.at}))
