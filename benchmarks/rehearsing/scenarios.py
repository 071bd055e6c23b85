"""Seeded fleets, plans and faults, and what a rehearsal of them shows."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from benchmarks.rehearsing.operator_alone import nodes_broken_alone
from health.rules.base import Severity
from health.suspects import fisher
from operations.tenants.disruption_cost import UNHARMED
from rollouts.commands.stage_drafts import gates_by_default
from rollouts.gates.earlier_findings import EarlierFinding, EarlierFindings
from rollouts.gates.options import read_gates
from rollouts.node_order.node_selection import FACTORS, Candidate, in_order, representatives
from rollouts.rehearsal.faults import FAULTS, DriverFault
from rollouts.rehearsal.fleet import Noise, OwnFinding, Pace, VirtualFleet, VirtualNode, afflict
from rollouts.rehearsal.run import RehearsalResult, RehearsedStage, Run, Unending

BEGINS = datetime(2026, 11, 29, 6, tzinfo=UTC)
OLD, NEW = "570.172.08", "580.95.05"
SOAK = timedelta(minutes=30)
HEALTHY = "healthy"
CRITICAL, WARNING = Severity.CRITICAL.value, Severity.WARNING.value
PROPERTIES: Mapping[str, Sequence[str]] = {
    "kernel": ("5.15.0-151-generic", "6.8.0-45-generic", "6.8.0-79-generic"),
    "os_image": ("Ubuntu 22.04.5 LTS", "Ubuntu 24.04.2 LTS"),
    "gpu_product": ("NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3"),
    "container_runtime": ("containerd://1.7.27", "containerd://2.1.4"),
    "zone": ("a", "b", "c"),
}
# What happens on healthy nodes by itself, under either driver.
RESTARTING, LATE_EXPORTERS = 0.02, 0.02  # of the nodes
WARNINGS_AN_HOUR = (0, 0.003, 0.01, 0.03)  # on a node, all kinds together; a fleet has one of these
WARNING_RULES = ("gpu-hot", "gpu-throttled", "gpu-nvlink-errors", "gpu-xid")
KINDS_OF_WARNINGS = 2  # in a fleet
# Meta's 16,384 GPUs had 419 unexpected interruptions in 54 days: one in 264 days of a node (arXiv 2407.21783).
FAILURES_AN_HOUR = 1 / (264 * 24)
FAILURE_RULE = "gpu-xid"
BEFORE, AFTER = timedelta(days=14), timedelta(days=4)  # the time of these, around the start
CHANCE = 0.002  # so seldom as many nodes with a warning as a fault has would come by themselves
WIDE = 5 / 6  # of the rollouts: their canaries are large and change at once
KINDS = (1, 2, 2, 2, 2)  # values of a property in a fleet
MORE_GATES = {
    "test_job": {"metric": "tokens_per_second", "at_least": 900},
    "slo": {
        "expression": 'min(tokens_per_second{node=~"{{nodes}}"})',
        "higher_is_better": True,
        "at_most_worse_percent": 10,
    },
    "telemetry_fresh": {},
    "xid": {},
    "ecc": {},
    "thermal": {},
    "throttling": {},
    "nvlink": {},
}


@dataclass(frozen=True)
class Played:
    """One rehearsed rollout and what is known of its fault."""

    number: int
    fault: str
    nodes: int
    affected: int
    is_random: bool  # the fault follows no property
    is_detectable: bool  # Z29: a canary node has it, and shows it within the soak
    has_passed_canary: bool
    outcome: RehearsalResult
    operator_alone: int  # nodes that the GPU Operator alone would break
    may_be_proved: bool  # the counts exclude chance, whatever the properties are
    is_right_suspect: bool
    names_a_cause: bool
    is_stuck: bool  # it neither ended nor asked a person, though its fault does not come and go


def play(
    seed: int, number: int, *, faults: Mapping[str, DriverFault] = FAULTS, only_usual_gates: bool = False
) -> Played:
    dice = random.Random(f"{seed} {number}")
    key = kind_of(number, tuple(faults))
    nodes = _nodes(dice, idle=dice.choice((0.0, 0.2, 0.5)) if key == HEALTHY else dice.choice((0.0, 0.2, 0.5, 1.0)))
    fault, value = (None, "") if key == HEALTHY else _fault(dice, faults[key], nodes, is_given=faults is not FAULTS)
    affected = afflict(fault, nodes, value, dice) if fault else []
    own, past = _own_findings(dice, nodes)
    is_blind = fault is not None and fault.shows_by_findings_alone and dice.random() < 0.2
    trouble = "Prometheus does not answer." if is_blind else ""
    noise = Noise(f"{seed} {number}")
    fleet = VirtualFleet(
        {node.name: node for node in nodes}, OLD, NEW, at_once=0, trouble=trouble, noise=noise, past=past
    )
    stages = _stages(dice, nodes, only_usual_gates=only_usual_gates)
    canary = set(stages[0].nodes)
    alone = nodes_broken_alone(nodes)
    run = Run(fleet, stages, BEGINS)
    is_stuck = False
    try:
        outcome = run.to_the_end()
    except Unending:  # under a fault that comes and goes, no gate waits for long enough to ask a person
        outcome, is_stuck = run.outcome(), not (fault and fault.on)
    return Played(
        number=number,
        fault=key,
        nodes=len(nodes),
        affected=len(affected),
        is_random=fault is not None and not fault.factor,
        is_detectable=fault is not None
        and _is_detectable(fault, [node for node in affected if node.name in canary], len(canary), own),
        has_passed_canary=0 in outcome.passed,
        outcome=outcome,
        operator_alone=alone,
        may_be_proved=fault is not None and bool(fault.factor) and _may_be_proved(outcome, fleet),
        is_right_suspect=fault is not None and _names(outcome, fault, value),
        names_a_cause=bool(outcome.suspects.suspects) and outcome.suspects.suspects[0].is_cause,
        is_stuck=is_stuck,
    )


def kind_of(number: int, faults: Sequence[str]) -> str:
    """Returns the key of the rollout's fault: a quarter of the rollouts are healthy, and all faults are as frequent."""
    return HEALTHY if number % 4 == 0 else faults[(number - number // 4 - 1) % len(faults)]


def _nodes(dice: random.Random, *, idle: float) -> list[VirtualNode]:
    kinds = {name: dice.sample(values, min(len(values), dice.choice(KINDS))) for name, values in PROPERTIES.items()}
    return [
        VirtualNode(
            f"node-{number:03}",
            {name: dice.choice(values) for name, values in kinds.items()} | {"driver_version": OLD},
            OLD,
            pods=0 if dice.random() < idle else dice.randint(1, 8),
            pace=_pace(dice),
            is_sick_before=dice.random() < 0.03,
            has_harmless_finding=dice.random() < 0.1,
            throughput=dice.uniform(0.97, 1.03),
            restarts_after=timedelta(minutes=dice.uniform(1, 60)) if dice.random() < RESTARTING else None,
            exporter_after=timedelta(minutes=dice.uniform(2, 12)) if dice.random() < LATE_EXPORTERS else timedelta(0),
        )
        for number in range(round(50 * 10 ** dice.random()))
    ]


def _own_findings(
    dice: random.Random, nodes: Sequence[VirtualNode]
) -> tuple[Mapping[tuple[str, str], float], EarlierFindings]:
    """Gives nodes the findings that come by themselves. Returns their rates an hour, and those of the days before."""
    warnings = dict.fromkeys(dice.sample(WARNING_RULES, KINDS_OF_WARNINGS), dice.choice(WARNINGS_AN_HOUR))
    rates = {(rule, WARNING): rate / KINDS_OF_WARNINGS for rule, rate in warnings.items() if rate}
    rates[FAILURE_RULE, CRITICAL] = FAILURES_AN_HOUR
    earlier = []
    for node in nodes:
        for (rule, severity), rate in rates.items():
            first = timedelta(hours=dice.expovariate(rate))
            if first < BEFORE:
                earlier.append(EarlierFinding(node.name, rule, severity, BEGINS - BEFORE + first))
            node.own_findings += tuple(_coming(dice, rule, severity, rate))
    return rates, EarlierFindings(dict.fromkeys((node.name for node in nodes), BEGINS - BEFORE), BEGINS, tuple(earlier))


def _coming(dice: random.Random, rule: str, severity: str, rate: float) -> Iterator[OwnFinding]:
    at = BEGINS + timedelta(hours=dice.expovariate(rate))
    while at < BEGINS + AFTER:
        lasts = timedelta(minutes=dice.uniform(10, 60)) if severity == WARNING else AFTER
        yield OwnFinding(rule, severity, at, at + lasts)
        at += lasts + timedelta(hours=dice.expovariate(rate))


def _pace(dice: random.Random) -> Pace:
    def minutes(least: float, most: float) -> timedelta:
        return timedelta(seconds=round(60 * dice.uniform(least, most)))

    return Pace(minutes(0.5, 4), minutes(2, 8), minutes(1, 4), minutes(0.5, 8), minutes(1, 5))


def _fault(
    dice: random.Random, fault: DriverFault, nodes: Sequence[VirtualNode], *, is_given: bool
) -> tuple[DriverFault, str]:
    """Returns the fault with a share and a delay of this rollout, and the value of its property.

    A fault of a file that somebody gave keeps its share and its delay.
    """
    share = 100 if fault.factor else dice.choice((10, 30, 50, 100))
    later = dice.choice((0, 0, 5, 40))  # 40: after every soak
    value = (fault.value or dice.choice(nodes).facts.get(fault.factor, "")) if fault.factor else ""
    if is_given:
        return fault, value
    return replace(fault, share_percent=share, after_minutes=fault.after_minutes + later), value


def _stages(
    dice: random.Random, nodes: Sequence[VirtualNode], *, only_usual_gates: bool
) -> tuple[RehearsedStage, RehearsedStage]:
    gates = tuple(read_gates(gates_by_default() | ({} if only_usual_gates else MORE_GATES)))
    candidates = [
        Candidate(node.uid, node.name, node.facts, not node.is_sick_before, replace(UNHARMED, pods=node.pods))
        for node in nodes
    ]
    # In most rollouts many nodes change at once, so that enough fail together to prove what they share.
    is_wide = dice.random() < WIDE
    size = dice.randint(14, 20) if is_wide else dice.randint(3, 10)
    canary = representatives(candidates, min(size, len(candidates) // 2))
    others = in_order([one for one in candidates if one not in canary])
    at_once = dice.randint(14, 20) if is_wide else dice.randint(1, 3)
    return (
        RehearsedStage("Canary", [one.name for one in canary], gates, max_unavailable=at_once),
        RehearsedStage("Others", [one.name for one in others], gates, max_unavailable=max(1, len(others) // 5)),
    )


def _is_detectable(
    fault: DriverFault, affected: Sequence[VirtualNode], canary: int, own: Mapping[tuple[str, str], float]
) -> bool:
    """Returns whether canary nodes show the fault to somebody within the soak (Z29), more often than chance would."""
    showing = [node for node in affected if _would_show(node, fault)]
    rates = [own.get((one.rule, one.severity), 0) for one in fault.opens]
    if not showing or not fault.shows_by_findings_alone or 0 in rates:
        return bool(showing)
    expected = min(rates) * canary * SOAK / timedelta(hours=1)
    fewer = sum(math.exp(-expected) * expected**number / math.factorial(number) for number in range(len(showing)))
    return 1 - fewer <= CHANCE


def _would_show(node: VirtualNode, fault: DriverFault) -> bool:
    """Returns whether the node shows its fault to somebody within the soak (Z29)."""
    if not node.pods and not fault.shows_on_idle_nodes:
        return False
    after = fault.after
    if fault.shows_by_findings_alone:
        if fault.first_finding_after is None:
            return False
        after += fault.first_finding_after
    return after <= SOAK - timedelta(minutes=10)  # the last ten minutes are too short for any limit


def _may_be_proved(outcome: RehearsalResult, fleet: VirtualFleet) -> bool:
    """Returns whether a property that only the failed nodes have would be proved among these nodes."""
    failed, good = outcome.suspects.failed, outcome.suspects.good
    if not failed or not good or any(fleet.nodes[name].fault for name in set(outcome.changed) - set(outcome.harmed)):
        return False
    return fisher(failed, failed, failed, failed + good) * len(FACTORS) <= 0.05


def _names(outcome: RehearsalResult, fault: DriverFault, value: str) -> bool:
    first = next(iter(outcome.suspects.suspects), None)
    wanted = (FACTORS.get(fault.factor, ""), value)
    return first is not None and first.is_cause and wanted in [tuple(each) for each in first.properties]
