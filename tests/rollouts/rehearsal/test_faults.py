"""Each fault stops in the canary, and what is no fault stops nothing: the product's gates in virtual time."""

from dataclasses import replace
from datetime import timedelta

import pytest

from health.suspects import suspects_of
from operations.failure_domains import Allowance, Budgets, Domain, DomainKind
from rollouts.commands.stage_drafts import gates_by_default
from rollouts.gates.options import read_gates
from rollouts.rehearsal.faults import FAULTS, DriverFault
from rollouts.rehearsal.fleet import Pace, VirtualFleet, VirtualNode
from rollouts.rehearsal.run import RehearsalResult, RehearsedStage, Run, rehearse
from tests.make import NOON

OLD, NEW = "570.172.08", "580.95.05"
MORE = {
    "test_job": {"metric": "tokens_per_second", "at_least": 900},
    "slo": {
        "expression": 'min(tokens{node=~"{{nodes}}"})',
        "higher_is_better": True,
        "at_most_worse_percent": 10,
    },
    "telemetry_fresh": {},
    "ecc": {},
}
CANARY = 2


def fleet(fault: DriverFault | None = None, *, size: int = 8, **given) -> VirtualFleet:
    """Every second node has the older kernel, OS image and GPU; a fault that follows one of them is on these."""
    nodes = {}
    for number in range(size):
        old = number % 2 == 0
        facts = {name: f"{name} {'1' if old else '2'}" for name in ("kernel", "os_image", "gpu_product")}
        node = VirtualNode(f"node-{number}", facts, OLD, **given)
        if fault is not None and (old or not fault.factor):
            node.fault = fault
        nodes[node.name] = node
    return VirtualFleet(nodes, OLD, NEW, at_once=0)


def rehearsed(played: VirtualFleet, *, gates: dict | None = None) -> RehearsalResult:
    wanted = tuple(read_gates(gates_by_default() | (MORE if gates is None else gates)))
    names = list(played.nodes)
    stages = [
        RehearsedStage("Canary", names[:CANARY], wanted),
        RehearsedStage("Others", names[CANARY:], wanted, max_unavailable=3),
    ]
    return rehearse(played, stages, begins=NOON)


@pytest.mark.parametrize("key", FAULTS)
def test_each_fault_stops_in_the_canary(key: str):
    outcome = rehearsed(fleet(FAULTS[key]))

    assert outcome.stage == 0
    assert outcome.gate
    assert outcome.stopped_by
    assert set(outcome.changed) <= {"node-0", "node-1"}
    assert "node-4" in outcome.unseen


@pytest.mark.nightly
@pytest.mark.parametrize("key", ["", *FAULTS])
def test_skipped_quiet_rounds_and_kept_evidence_change_no_outcome(key: str, monkeypatch):
    def figures() -> RehearsalResult:
        outcome = rehearsed(fleet(FAULTS.get(key)), gates={"telemetry_fresh": {}, "ecc": {}})
        # A node whose change ends within a round of the halt is compared, or not.
        nobody = suspects_of([])
        return replace(outcome, took=timedelta(0), first_sign=None, stopped_by="", suspects=nobody)

    found = figures()
    monkeypatch.setattr(Run, "_until_something_happens", lambda _: timedelta(seconds=30))
    see = Run._see
    monkeypatch.setattr(Run, "_see", lambda run: (run.touched.update(run.fleet.nodes), see(run)))

    assert figures() == found


def test_a_good_driver_goes_through_both_stages():
    outcome = rehearsed(fleet())

    assert outcome.is_complete
    assert outcome.passed == (0, 1)
    assert len(outcome.changed) == 8
    assert outcome.stopped_by == ""
    assert outcome.took > 2 * timedelta(minutes=30)


def test_no_more_nodes_of_a_failure_domain_are_out_than_its_budget_allows():
    played, zone, most = fleet(), Domain(DomainKind.ZONE, "a"), list[int]()
    gates = tuple(read_gates(gates_by_default()))
    played.budgets = Budgets({zone: Allowance("zone a", 2)}, dict.fromkeys(played.nodes, (zone,)))
    run = Run(played, [RehearsedStage("All", list(played.nodes), gates, max_unavailable=8)], NOON)

    outcome = run.to_the_end(lambda *_: most.append(sum(node.is_out for node in played.nodes.values())))

    assert outcome.is_complete
    assert max(most) == 2


def test_a_node_takes_as_long_as_nodes_of_past_plans():
    slow = rehearsed(fleet(pace=Pace.lasting(timedelta(minutes=20))))

    added = timedelta(minutes=20 - 8) * (2 + 2)  # two of the canary one at a time, then two waves of three
    assert abs(slow.took - rehearsed(fleet()).took - added) < timedelta(minutes=5)


def test_what_was_wrong_before_stops_nothing():
    assert rehearsed(fleet(is_sick_before=True, has_harmless_finding=True)).is_complete


def test_telemetry_that_does_not_answer_is_no_pass():
    played = fleet()
    played.trouble = "Prometheus does not answer."

    outcome = rehearsed(played)

    assert outcome.passed == ()
    assert "a person decides" in outcome.stopped_by


def test_idle_nodes_without_a_test_job_are_no_pass():
    played = fleet(FAULTS["bad-for-half"], pods=0)
    usual = {key: options for key, options in gates_by_default().items() if key != "test_job"}
    wanted = tuple(read_gates(usual))

    outcome = rehearse(played, [RehearsedStage("Canary", list(played.nodes), wanted)], begins=NOON)

    assert outcome.gate == "workloads_ready"
    assert "Nothing has tested the driver" in outcome.stopped_by


def test_a_fault_that_begins_after_the_soak_passes_and_is_told():
    late = replace(FAULTS["late-xid"], after_minutes=300)

    outcome = rehearsed(fleet(late))

    assert 0 in outcome.passed


def test_the_property_that_the_failed_nodes_share_is_named():
    """They change in one wave, and so show it at the same time."""
    played = fleet(size=22)
    for number, node in enumerate(played.nodes.values()):
        node.facts = {"kernel": node.facts["kernel"], "zone": f"zone {number % 3}"}
        node.fault = FAULTS["late-xid"] if number >= CANARY and number % 2 == 0 else None
    wanted, names = tuple(read_gates(gates_by_default())), list(played.nodes)
    stages = [
        RehearsedStage("Canary", names[:CANARY], wanted),
        RehearsedStage("Others", names[CANARY:], wanted, max_unavailable=20),
    ]

    outcome = rehearse(played, stages, begins=NOON)

    assert outcome.stage == 1
    assert outcome.suspects.title == "Probable cause: kernel"


def test_the_same_rehearsal_twice_is_the_same():
    assert rehearsed(fleet(FAULTS["ecc"])) == rehearsed(fleet(FAULTS["ecc"]))
