"""The strips of gates without a series of numbers: bars, bounds and text of each row."""

from datetime import timedelta

import pytest

from operations.models import Freeze
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import Approval, Plan, Stage
from rollouts.queries.gate_plots import drawn_stages, newest_stages
from rollouts.queries.gate_strips import gate_strips
from tests.make import NOON, a_user, a_window
from tests.pages import visiting
from tests.rollouts.backtest.story import FEW_GATES, a_halted_plan
from tests.rollouts.rows import an_item, answered

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def at(minute: float):
    return NOON + timedelta(minutes=minute)


def strip_of(plan, gate, *, now=NOON + timedelta(minutes=70)):
    (found,) = [strip for strip in gate_strips(plan, newest_stages(plan), now=now) if strip.gate.key == gate]
    return found


def rows_of(plan, gate, **given):
    return {row.name: row for row in strip_of(plan, gate, **given).rows}


def kinds(row):
    return [(bar.kind, round(bar.begin, 2), round(bar.end, 2)) for bar in row.bars]


def canary_of(gates):
    plan = a_halted_plan(gates={**FEW_GATES, **gates})
    return plan, plan.stages.get(index=0)


def test_the_soak_shows_its_time_its_end_and_interrupted_runs():
    plan, canary = canary_of({"soak": {"duration_s": 1200}})

    def run(since, seen):
        clock = [an_item("Since", at(since).isoformat()), an_item("Until", at(since + 20).isoformat())]
        answered(canary, "soak", "wait", cause="running", since=at(since), at=at(seen), evidence=clock)

    run(10, 20)
    answered(canary, "soak", "wait", cause="not-begun", since=at(20), at=at(25), evidence=[])
    run(25, 30)

    rows = rows_of(plan, "soak")

    assert rows["Soak"].value == "5 min of 20 min"
    assert kinds(rows["Soak"]) == [("ok", 0.43, 0.57), ("idle", 0.57, 1.0)]
    assert rows["Interrupted runs"].value == "1"
    assert (kinds(rows["Interrupted runs"]), rows["Interrupted runs"].marks[0].title) == (
        [("warn", 0.0, 0.29)], "Interrupted at 12:20 UTC",
    )  # fmt: skip

    answered(canary, "soak", "wait", cause="not-begun", since=at(30), at=at(31), evidence=[])
    assert rows_of(plan, "soak")["Soak"].value == "0 s of 20 min"


def test_headroom_shows_free_gpus_against_the_need_of_the_next_wave():
    plan, canary = canary_of({"headroom": {}})
    amounts = {"GPU pods": 3, "GPU pods without room": 1, "nvidia.com/gpu needed": 16, "nvidia.com/gpu free": 12}
    items = [an_item(label, value) for label, value in amounts.items()]
    answered(canary, "headroom", "wait", evidence=[*items, an_item("Tolerated without room", 0)])

    rows = rows_of(plan, "headroom")

    assert (rows["nvidia.com/gpu"].value, kinds(rows["nvidia.com/gpu"])) == ("12 free, 16 needed", [("bad", 0, 0.75)])
    assert rows["nvidia.com/gpu"].marks[0].at == 1
    assert rows["GPU pods without room"].value == "1 of 3"

    answered(canary, "headroom", "pass", title="No node is left to release", evidence=[])
    rows = rows_of(plan, "headroom")
    assert (rows["Result"].value, rows["An earlier wave"].value) == ("No node is left to release.", "at 12:00 UTC")
    assert rows["nvidia.com/gpu"].value == "12 free, 16 needed"


def test_an_approval_counts_only_while_it_is_valid_and_not_by_the_author():
    plan, canary = canary_of({"approval": {"needed": 2, "valid_for_s": 1800}})
    author = next(iter(plan.proposers))
    for by, minute, given in (
        ("bea", 1, {}), ("eve", 35, {}), (author, 36, {}),
        ("dan", 37, {"void_at": at(38), "void_reason": "Nodes changed"}),
    ):  # fmt: skip
        Approval.objects.create(stage=canary, bundle={}, bundle_hash="x", by=by, at=at(minute), **given)
    answered(canary, "approval", "wait", at=at(40), evidence=[an_item("Approvals given", 1)])

    rows = rows_of(plan, "approval")

    assert (rows["Approvals"].value, kinds(rows["Approvals"])) == ("1 of 2", [("ok", 0, 0.5)])
    assert {name: row.bars[0].kind for name, row in rows.items()} == {
        "Approvals": "ok", "bea": "idle", "eve": "ok", author: "idle", "dan": "idle",
    }  # fmt: skip
    assert rows["eve"].value == "approved 12:35 UTC, until 13:05 UTC"
    assert rows["dan"].value == "approved 12:37 UTC, void: Nodes changed"


def test_the_matrix_shows_its_entries_by_support():
    plan, canary = canary_of({"compatibility": {}})
    items = [an_item("Compared nodes", 3), an_item("Unknown", "It is not listed. (1 node)")]
    answered(canary, "compatibility", "wait", evidence=[*items, an_item("Supported combinations", 4)])

    rows = rows_of(plan, "compatibility")

    assert [(name, row.value, [bar.kind for bar in row.bars]) for name, row in rows.items()] == [
        ("Compared nodes", "3", []), ("Unknown", "It is not listed. (1 node)", ["warn"]),
        ("Supported combinations", "4", ["ok"]),
    ]  # fmt: skip


def test_changes_by_others_are_drawn_in_all_and_by_node():
    plan, canary = canary_of({"no_foreign_change": {}})
    kept = {"cause": "kept", "nodes": ["node-0"], "evidence": [an_item("node-0", "cordoned")]}
    answered(canary, "no_foreign_change", "pass", since=at(10), at=at(20), evidence=[])
    answered(canary, "no_foreign_change", "wait", since=at(20), at=at(25), **kept)
    answered(canary, "no_foreign_change", "pass", since=at(25), at=at(30), evidence=[])

    rows = rows_of(plan, "no_foreign_change")

    assert kinds(rows["Changed nodes"]) == [("ok", 0, 0.5), ("warn", 0.5, 0.75), ("ok", 0.75, 1)]
    assert (rows["node-0"].value, kinds(rows["node-0"])) == ("cordoned", [("warn", 0.5, 0.75)])
    assert strip_of(plan, "no_foreign_change").is_quiet


def test_windows_and_freezes_of_seven_days_are_drawn_while_the_stage_releases():
    plan, canary = canary_of({"window": {}})
    answered(canary, "window", "wait", title="The maintenance window is closed")
    assert [row.value for row in strip_of(plan, "window").rows] == ["The maintenance window is closed."]

    Plan.objects.update(state=PlanState.PROMOTING)
    Stage.objects.filter(pk=canary.pk).update(state=StageState.PROMOTING)
    canary.targets.update(state=TargetState.HELD)
    plan.refresh_from_db()
    assert rows_of(plan, "window", now=NOON)["Maintenance windows"].value == "none covers these nodes"
    a_window(plan.cluster)  # every night from 2 to 4
    Freeze.objects.create(cluster=plan.cluster, by="bea", at=NOON, reason="Audit", until=NOON + timedelta(days=3.5))

    rows = rows_of(plan, "window", now=NOON)

    (window,) = [row for row in rows.values() if row.bars and row.name != "Freeze"]
    assert len(window.bars) == 7
    assert window.bars[0][:3] == (pytest.approx(14 / 168), pytest.approx(16 / 168), "ok")
    assert window.value == "opens Sunday 02:00 UTC"
    assert kinds(rows["Freeze"]) == [("bad", 0, 0.5)]


def test_strips_of_passed_gates_are_folded_and_a_gate_without_an_answer_has_none():
    plan, canary = canary_of({"soak": {}, "no_foreign_change": {}})
    answered(canary, "no_foreign_change", "pass", title="Nobody else changed the changed node")
    viewer = visiting(a_user("ada", role="operator"))

    text = viewer.get(f"/parts/plans/{plan.pk}/gate-plots").content.decode()
    lines = viewer.get(f"/plans/{plan.pk}").content.decode()

    assert text.index("<details") < text.index('id="plot-0-no_foreign_change"')
    assert "Nobody else changed the changed node" in text
    assert ('href="#plot-0-no_foreign_change"' in lines, 'href="#plot-0-soak"' in lines) == (True, False)


def test_stages_before_the_three_newest_have_no_link_to_a_plot():
    begun = [Stage(pk=number, index=number, kind="pool", state="passed") for number in range(5)]
    others = [Stage(pk=8, index=8, kind="pool", state="waiting"), Stage(pk=9, index=9, kind="rollback", state="passed")]

    assert [stage.pk for stage in drawn_stages([*others, *begun])] == [4, 3, 2]
