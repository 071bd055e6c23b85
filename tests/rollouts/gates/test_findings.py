"""New findings fail, missing evidence waits, and what stood before the change is subtracted and named."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.gates.base import Answer, Evidence, GateResult
from rollouts.gates.ecc import Ecc
from rollouts.gates.findings import RUNS_WITHIN, NewFindings
from rollouts.gates.nvlink import Nvlink
from rollouts.gates.options import BadGate, read_gates
from rollouts.gates.xid import Xid
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.gates.random_evidence import some_evidence
from tests.rollouts.make import a_baseline, a_finding_on_it, a_health, a_target, a_telemetry, evidence

MINUTE = timedelta(minutes=1)
CHANGED = NOON - 10 * MINUTE
OLD = NOON - timedelta(days=1)


def changed(name: str = "node-1", *found: Any, before: dict[str, str] | None = None, **given_: Any):
    row = {"state_since": CHANGED, "findings": found, "baseline": a_baseline(findings=before or {})}
    return a_target(name, **row | given_)


def answer(*targets: Any, gate: Any = None, **given_: Any) -> GateResult:
    return (gate or NewFindings()).evaluate(evidence(*targets, **given_), now=NOON)


def values(result: GateResult) -> list[tuple[str, Any]]:
    return [(item.label, item.value) for item in result.evidence]


def test_a_new_critical_finding_fails_and_is_the_title():
    result = answer(changed("node-1", a_finding_on_it("GPU 3 of node-1: Xid 79")), changed("node-2"))

    assert (result.answer, result.title) == (Answer.FAIL, "GPU 3 of node-1: Xid 79")
    assert (result.nodes, result.cause) == (("node-1",), "gpu-xid")


@pytest.mark.parametrize(
    ("gate", "severity", "expected"),
    [
        (NewFindings(), "warning", Answer.PASS),
        (NewFindings(severity="warning"), "warning", Answer.FAIL),
        (NewFindings(severity="warning"), "note", Answer.PASS),
        (Xid(), "warning", Answer.FAIL),
        (Xid(), "note", Answer.PASS),  # an application's
    ],
)
def test_only_findings_at_or_above_the_severity_count(gate, severity, expected):
    assert answer(changed("node-1", a_finding_on_it(severity=severity)), gate=gate).answer is expected


def test_a_topic_counts_the_findings_of_its_rules_alone():
    hot = a_finding_on_it("GPU 3 of node-1 is too hot", key="gpu-hot GPU-3", rule="gpu-hot")

    assert answer(changed("node-1", hot), gate=Xid()).answer is Answer.PASS
    assert answer(changed("node-1", hot)).answer is Answer.FAIL


def test_what_the_node_had_before_its_change_is_subtracted_and_named():
    again = a_finding_on_it(since=NOON)  # it ended with the driver, and came back

    result = answer(changed("node-1", again, before={again.key: "critical"}))

    assert result.answer is Answer.PASS
    assert ("Before the change", again.title) in values(result)


def test_what_has_become_worse_since_the_change_is_new():
    assert answer(changed("node-1", a_finding_on_it(), before={"gpu-xid GPU-3 79": "warning"})).answer is Answer.FAIL


def test_what_began_during_the_change_may_still_end():
    """A node that reboots is not Ready meanwhile (Z21)."""
    of_the_move = a_finding_on_it("node-1 is not Ready", since=CHANGED - MINUTE)
    node = changed("node-1", of_the_move, state_since=NOON - MINUTE)

    assert answer(node).cause == "not-evaluated"
    assert answer(changed("node-1", of_the_move)).answer is Answer.FAIL


@pytest.mark.parametrize(
    ("health", "cause"),
    [
        (None, "no-source"),
        (a_health(evaluated_at=None), "rules-not-run"),
        (a_health(evaluated_at=NOON - 3 * MINUTE), "rules-not-run"),
        (a_health(evaluated_at=NOON + 3 * MINUTE), "rules-not-run"),  # a clock was set back
        (a_health(trouble="The telemetry source is silent."), "source-silent"),
    ],
)
def test_a_fleet_that_is_not_evaluated_waits(health, cause):
    result = answer(changed(), health=health)

    assert (result.answer, result.cause) == (Answer.WAIT, cause)
    assert result.steps


def test_an_evaluation_of_before_the_change_waits():
    result = answer(changed(state_since=NOON - MINUTE), health=a_health(evaluated_at=NOON - MINUTE / 2))

    assert (result.answer, result.cause) == (Answer.WAIT, "not-evaluated")


@pytest.mark.parametrize("moving", [{"upgrade_state": "pod-restart-required"}, {"mig_config_state": "pending"}])
def test_a_node_that_is_changed_again_is_not_evaluated(moving):
    assert answer(changed(**moving)).cause == "not-evaluated"


def test_before_the_first_change_it_only_waits_for_it():
    result = answer(a_target(state=TargetState.HELD, baseline=None), health=None)

    assert (result.answer, result.cause) == (Answer.WAIT, "to-come")


def test_the_counters_restart_with_the_new_driver_too():
    node = changed(state_since=NOON - MINUTE, telemetry=a_telemetry(restarted_at=NOON - MINUTE / 2))

    assert answer(node, gate=Xid()).cause == "not-evaluated"


def test_counters_that_restarted_in_the_soak_wait_for_new_samples():
    restarted = changed(telemetry=a_telemetry(restarted_at=NOON - MINUTE))

    result = answer(restarted, gate=Xid())

    assert (result.answer, result.cause) == (Answer.WAIT, "counters-restarted")
    assert answer(changed(telemetry=a_telemetry(restarted_at=NOON - 3 * MINUTE)), gate=Xid()).answer is Answer.PASS


def test_a_node_that_joined_in_the_soak_has_no_past_and_waits():
    late = changed("late", baseline=None)

    result = answer(changed(), late)

    assert (result.answer, result.cause, result.nodes) == (Answer.WAIT, "unknown-before", ("late",))
    assert answer(changed("old", baseline=a_baseline(findings=None))).cause == "unknown-before"


def test_a_finding_that_is_being_confirmed_waits():
    assert answer(changed("node-1", a_finding_on_it(is_open=False))).cause == "confirming"


def test_a_rule_in_shadow_mode_halts_nothing_and_passes_no_gate_on_its_topic():
    shadow = a_finding_on_it(is_shadow=True)

    assert answer(changed("node-1", shadow)).answer is Answer.PASS
    assert answer(changed("node-1", shadow), gate=Xid()).cause == "shadow"


def test_a_metric_that_is_not_exported_waits_and_names_what_to_enable():
    without = [key for key in a_telemetry().exported if key.startswith("nvlink_")]

    result = answer(changed(telemetry=a_telemetry(without=without)), gate=Nvlink())

    assert (result.answer, result.cause) == (Answer.WAIT, "not-exported")
    assert "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL" in result.steps[0]


def test_memory_errors_are_measured_by_remapped_rows_where_ecc_is_not_exported():
    without = ["ecc_corrected", "ecc_uncorrected"]

    assert answer(changed(telemetry=a_telemetry(without=without)), gate=Ecc()).answer is Answer.PASS


def test_no_exporter_of_the_vendor_has_the_metric():
    telemetry = a_telemetry(without=[*Nvlink.measured_by.metrics], vendor="amd")

    assert "of this vendor" in answer(changed(telemetry=telemetry), gate=Nvlink()).steps[0]


def test_one_silent_gpu_of_a_node_waits():
    assert answer(changed(telemetry=a_telemetry(reporting=7))).cause == "gpus-silent"
    assert answer(changed(telemetry=None)).cause == "gpus-silent"


def test_one_gpu_without_a_fresh_sample_of_the_metric_waits():
    whole = a_telemetry()
    stale = a_telemetry(fresh={**whole.fresh, "xid": 7, "xids_counted": 7})

    assert answer(changed(telemetry=stale), gate=Xid()).cause == "stale"
    assert answer(changed(telemetry=stale)).answer is Answer.PASS


def test_without_a_source_rules_about_nodes_still_count_and_topics_wait():
    health = a_health(has_source=False)
    node = changed(telemetry=None)

    result = answer(node, health=health)

    assert (result.answer, "no rule about GPUs" in result.summary) == (Answer.PASS, True)
    assert answer(node, gate=Xid(), health=health).cause == "no-source"


PEERS = [f"peer-{number}" for number in range(4)]


@pytest.mark.parametrize(
    ("nodes", "ill_peers", "expected"),
    [
        (4, 0, Answer.FAIL),
        (4, 1, Answer.PASS),  # one of four here, and one of four there
        (3, 4, Answer.FAIL),  # too few nodes to compare
    ],
)
def test_what_unchanged_nodes_have_as_often_is_subtracted_and_named(nodes, ill_peers, expected):
    found = a_finding_on_it()
    peers = {name: (found,) if place < ill_peers else () for place, name in enumerate(PEERS)}
    targets = [changed("node-0", found), *(changed(f"node-{number}") for number in range(1, nodes))]

    result = answer(*targets, health=a_health(peers=peers))

    assert result.answer is expected
    assert (("On unchanged nodes too", found.title) in values(result)) is (expected is Answer.PASS)


@pytest.mark.parametrize(("ill", "expected"), [(1, Answer.WAIT), (2, Answer.WAIT), (3, Answer.FAIL)])
def test_more_often_than_on_unchanged_nodes_waits_until_chance_is_excluded(ill, expected):
    found = a_finding_on_it()
    peers = {f"peer-{number}": (found,) if number == 0 else () for number in range(45)}
    targets = [changed(f"node-{number}", *([found] if number < ill else [])) for number in range(5)]

    result = answer(*targets, health=a_health(peers=peers))

    assert result.answer is expected
    shown = dict(values(result))
    assert shown["gpu-xid: effect"] == ill * 9
    assert shown["gpu-xid: fails from"] == "3 of 5 nodes"
    assert (result.cause == "unproved") is (expected is Answer.WAIT)


def test_a_node_that_is_still_to_change_keeps_it_waiting():
    result = answer(changed(), a_target("node-2", state=TargetState.HELD, baseline=None))

    assert (result.answer, result.cause) == (Answer.WAIT, "to-come")


def test_an_unknown_severity_is_refused():
    with pytest.raises(BadGate, match="critical, warning, note"):
        read_gates({"findings": {"severity": "fatal"}})


GATES = st.sampled_from([NewFindings(), NewFindings(severity="note"), Xid(), Ecc(), Nvlink()])


@given(shown=some_evidence(), gate=GATES)
def test_a_pass_rests_on_an_evaluation_and_samples_of_every_changed_node(shown: Evidence, gate: NewFindings):
    result = gate.evaluate(shown, now=NOON)

    if result.answer is Answer.PASS:
        health = shown.health
        assert health is not None
        assert health.evaluated_at is not None
        assert NOON - health.evaluated_at <= RUNS_WITHIN
        assert not health.trouble
        for target in shown.changed:
            assert not target.is_seen or health.evaluated_at >= target.state_since + gate.settle
            has_telemetry = target.telemetry is not None and target.telemetry.reporting >= target.telemetry.gpus
            assert not target.is_seen or has_telemetry or (not health.has_source and gate.measured_by is None)


@given(shown=some_evidence(), gate=GATES)
def test_less_evidence_never_makes_a_pass(shown: Evidence, gate: NewFindings):
    """No path leads to a pass with nothing evaluated."""
    assert gate.evaluate(replace(shown, health=None), now=NOON).answer is not Answer.PASS
