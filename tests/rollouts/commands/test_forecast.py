"""The forecast of a plan, measured on past plans, and what came of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fleet.models import Node, PodPlacement
from rollouts.commands.forecast_rows import outcome_of
from rollouts.commands.plan_start import start
from rollouts.commands.preview import forecast_on_page, preview
from rollouts.commands.remaining_time import expected
from rollouts.models import Plan, PlanEvent, Target, Wave
from rollouts.queries.plan_view import plan_on_page
from tests.make import NOON, a_pod, a_window
from tests.rollouts.rows import CANARY, REST, a_draft, a_driver_cluster

MINUTE = timedelta(minutes=1)
SOAKED = CANARY.gate_options | {"soak": {"duration_s": 600}}


def a_past_plan(owner, *minutes: int, mode: str = "compiled", **facts: str) -> Plan:
    """One whose nodes took so long, in a cluster of its own."""
    plan = a_draft(a_driver_cluster(nodes=len(minutes) + 1), owner)
    start(plan, actor=owner, reason="It is time.", expected_revision=1, override_reason="x", now=NOON)
    plan.refresh_from_db()
    Plan.objects.filter(pk=plan.pk).update(
        state="promoted",
        state_since=NOON + 60 * MINUTE,
        sealed=plan.sealed | {"forecast": plan.sealed["forecast"] | {"mode": mode}},
    )
    wave = Wave.objects.create(stage=plan.stages.get(index=1), number=1, decided_at=NOON, reason="")
    for target, took in zip(Target.objects.filter(stage__plan=plan, stage__index=1), minutes, strict=False):
        Target.objects.filter(pk=target.pk).update(
            state="changed", released_at=NOON, state_since=NOON + took * MINUTE, facts=target.facts | facts, wave=wave,
            baseline={"workloads": {"chat": 2}},
        )  # fmt: skip
    plan.holds.update(ended_at=NOON)
    return plan


def seconds(forecast) -> dict[str, float | None]:
    return {row.key: row.forecast for row in forecast.rows}


def test_without_past_plans_the_default_of_the_driver_mode_counts(cluster, owner):
    compiled = preview(a_draft(cluster, owner), now=NOON).forecast_on_page
    cluster.driver_objects.update(use_precompiled=True)
    precompiled = preview(a_draft(cluster, owner), now=NOON).forecast_on_page

    assert (seconds(compiled)["node_s"], seconds(precompiled)["node_s"]) == (480, 240)
    assert compiled.cohorts[0].source == "default for a compiled driver"
    assert seconds(compiled)["operator_s"] == 120 * seconds(compiled)["waves"]


def test_minutes_are_measured_on_past_nodes_of_the_same_cohort(cluster, owner):
    """Of the whole cohort where it has three nodes, else of the same GPU; another driver mode never counts."""
    a_past_plan(owner, 3, 4, 5, 20)
    a_past_plan(owner, 40, 40, 40, mode="precompiled")
    same = preview(a_draft(cluster, owner), now=NOON).forecast_on_page
    Node.objects.filter(cluster=cluster).update(kernel="6.99")
    other_kernel = preview(a_draft(cluster, owner), now=NOON).forecast_on_page

    assert (same.cohorts[0].typical_s, same.cohorts[0].slow_s, same.cohorts[0].measured) == (270, 930, 4)
    assert same.cohorts[0].source == "4 nodes of past plans: compiled driver, the same GPU, kernel, OS image"
    assert other_kernel.cohorts[0].source == "4 nodes of past plans: compiled driver, the same GPU, OS image"
    assert seconds(same)["operator_s"] == 0, "what nodes took includes it"


def test_soaks_windows_and_approvals_are_lines_of_their_own(cluster, owner):
    """The window opens at 22:00, ten hours from now. An approval took 30 minutes in the past."""
    past = a_past_plan(owner, 4, 4, 4)
    rest = past.stages.get(index=1)
    for to, after in (("opening", 0), ("promoting", 30)):
        PlanEvent.objects.create(plan=past, stage=rest, what="stage", to=to, at=NOON + after * MINUTE, actor="engine")
    a_window(cluster, opens_at="22:00")
    stages = (replace(CANARY, gate_options=SOAKED), REST)

    found = preview(a_draft(cluster, owner, stages=stages), now=NOON).forecast_on_page

    times = seconds(found)
    assert (times["soaks_s"], times["approvals_s"]) == (600, 3600)
    assert times["windows_s"] == (10 * 60 - 30) * 60
    assert found.ends_at == NOON + timedelta(seconds=times["total_s"])


def test_a_started_plan_keeps_its_forecast_and_shows_what_came_of_it(cluster, owner):
    a_pod(Node.objects.get(name="node-1"), owner_kind="ReplicaSet", owner_name="chat-1", namespace="team-a")
    plan = a_draft(cluster, owner)
    start(plan, actor=owner, reason="It is time.", expected_revision=1, override_reason="x", now=NOON)
    plan.refresh_from_db()
    sealed = plan.sealed["forecast"]
    a_pod(Node.objects.get(name="node-2"))
    wave = Wave.objects.create(stage=plan.stages.get(index=0), number=1, decided_at=NOON, reason="")
    Target.objects.filter(stage__plan=plan, stage__index=0).update(
        state="changed", released_at=NOON + MINUTE, state_since=NOON + 9 * MINUTE, wave=wave,
        baseline={"workloads": {"chat": 3}},
    )  # fmt: skip

    shown = forecast_on_page(plan, now=NOON + 10 * MINUTE)

    rows = {row.key: row for row in shown.rows}
    assert shown.is_sealed
    assert {key: row.forecast for key, row in rows.items()} == sealed["values"]
    assert (rows["pods"].forecast, rows["pods"].outcome) == (1, 3)
    assert [rows[key].outcome for key in ("nodes", "node_s", "wave_s", "total_s")] == [1, 480, 540, 600]
    assert rows["without_room"].outcome_text == "not measured"
    assert shown.cohorts[0].outcome_s == 480


def test_jobs_services_and_warm_up_of_a_started_plan_are_measured(cluster, owner):
    plan = a_draft(cluster, owner)
    start(plan, actor=owner, reason="It is time.", expected_revision=1, override_reason="x", now=NOON)
    plan.refresh_from_db()
    target = Target.objects.filter(stage__plan=plan, stage__index=0).get()
    ready = {"ReplicaSet ml/chat": 3, "ReplicaSet ml/alone": 1, "PyTorchJob ml/llama": 4}
    Target.objects.filter(pk=target.pk).update(
        state="changed", released_at=NOON + MINUTE, state_since=NOON + 9 * MINUTE,
        baseline={"workloads": dict.fromkeys(ready, 1), "owners_ready": ready},
    )  # fmt: skip
    begins, whole = NOON - timedelta(hours=5), {"nvidia.com/gpu": 8}
    for name, uid, owner_kind, until, ended in (
        ("llama-0", target.node_uid, "PyTorchJob", 3, "Error"),
        ("llama-1", "elsewhere", "PyTorchJob", 4, ""),  # the rest of its gang ended too
        ("done-0", target.node_uid, "Job", 3, "Completed"),
        ("later-0", target.node_uid, "Job", 30, "Error"),
        ("chat-0", target.node_uid, "ReplicaSet", 3, ""),
    ):
        PodPlacement.objects.create(
            cluster=cluster, node_uid=uid, node_name="n", pod_uid=name, namespace="ml", name=name,
            owner_kind=owner_kind, owner_name=name.rpartition("-")[0], resources=whole, since=begins,
            until=NOON + until * MINUTE, ended=ended,
        )  # fmt: skip
    node = Node.objects.get(uid=target.node_uid)
    started = {"started_at": NOON + 10 * MINUTE, "is_ready": True, "ready_since": NOON + 17 * MINUTE}
    a_pod(node, owner_kind="ReplicaSet", owner_name="chat", namespace="ml", **started)

    values = outcome_of(plan, now=NOON + 40 * MINUTE).values

    assert (values["jobs"], values["services"], values["warm_up_s"]) == (1, 1, 420)
    assert values["gpu_hours"] == pytest.approx(8 * (5 + 3 / 60) + 8 * (5 + 4 / 60), abs=0.1)


def test_a_node_that_was_recalled_before_it_began_counts_nothing(cluster, owner):
    plan = a_draft(cluster, owner)
    start(plan, actor=owner, reason="It is time.", expected_revision=1, override_reason="x", now=NOON)
    target = Target.objects.filter(stage__plan=plan, stage__index=0).get()
    Target.objects.filter(pk=target.pk).update(
        state="held", released_at=NOON + MINUTE, state_since=NOON + 2 * MINUTE,
        baseline={"workloads": {"Job ml/long": 1}},
    )  # fmt: skip
    PodPlacement.objects.create(
        cluster=cluster, node_uid=target.node_uid, node_name="n", pod_uid="long-0", namespace="ml", name="long-0",
        owner_kind="Job", owner_name="long", since=NOON - MINUTE, until=NOON + 30 * MINUTE, ended="Error",
        resources={"nvidia.com/gpu": 8},
    )  # fmt: skip
    rows = ("pods", "jobs")

    recalled = outcome_of(plan, now=NOON + 40 * MINUTE).values
    Target.objects.filter(pk=target.pk).update(state="changing")
    begun = outcome_of(plan, now=NOON + 40 * MINUTE).values

    assert [recalled[row] for row in rows] == [0, 0]
    assert [begun[row] for row in rows] == [1, 1]


def test_a_failed_node_that_waits_for_another_try_counts(cluster, owner):
    plan = a_draft(cluster, owner)
    start(plan, actor=owner, reason="It is time.", expected_revision=1, override_reason="x", now=NOON)
    target = Target.objects.filter(stage__plan=plan, stage__index=0).get()
    Target.objects.filter(pk=target.pk).update(
        state="held", released_at=NOON + MINUTE, state_since=NOON + 9 * MINUTE, baseline={"workloads": {"chat": 2}}
    )
    PlanEvent.objects.create(
        plan=plan, stage=target.stage, target=target, what="target", to="failed", at=NOON + 5 * MINUTE, actor="engine"
    )

    assert outcome_of(plan, now=NOON + 40 * MINUTE).values["pods"] == 2


def test_the_warm_up_of_an_ended_plan_is_the_stored_one(cluster, owner):
    plan = a_draft(cluster, owner)
    start(plan, actor=owner, reason="It is time.", expected_revision=1, override_reason="x", now=NOON)
    target = Target.objects.filter(stage__plan=plan, stage__index=0).get()
    Target.objects.filter(pk=target.pk).update(state="changed", released_at=NOON, state_since=NOON + 9 * MINUTE)
    Plan.objects.filter(pk=plan.pk).update(state="promoted", state_since=NOON + 60 * MINUTE)
    times = {"started_at": NOON + 10 * MINUTE, "is_ready": True, "ready_since": NOON + 17 * MINUTE}
    a_pod(Node.objects.get(uid=target.node_uid), owner_kind="ReplicaSet", owner_name="chat", namespace="ml", **times)

    plan.refresh_from_db()
    assert "warm_up_s" not in outcome_of(plan, now=NOON + timedelta(days=30)).values, "pods go: none is measured later"
    plan.warm_up_s = 300
    assert outcome_of(plan, now=NOON + timedelta(days=30)).values["warm_up_s"] == 300


def test_a_plan_that_was_started_without_a_forecast_has_none(cluster, owner):
    plan = a_draft(cluster, owner)
    start(plan, actor=owner, reason="It is time.", expected_revision=1, override_reason="x", now=NOON)
    Plan.objects.filter(pk=plan.pk).update(sealed={})
    plan.refresh_from_db()

    assert forecast_on_page(plan, now=NOON) is None
    assert outcome_of(plan, now=NOON).values["nodes"] == 0


@pytest.mark.parametrize("pods", [True, False])
def test_pods_without_room_elsewhere_are_named(cluster, owner, pods):
    for name in ("node-0", "node-1", "node-2"):
        if pods:
            Node.objects.filter(name=name).update(requested={"nvidia.com/gpu": 8})
            a_pod(Node.objects.get(name=name), gpus=8, owner_kind="ReplicaSet", owner_name="chat-1", namespace="team-a")

    found = preview(a_draft(cluster, owner), now=NOON).forecast.headroom

    assert found.without_room == (2 if pods else 0)
    assert bool(found.sentences) is pods


def test_before_its_first_node_a_plan_goes_by_the_forecast_of_its_start(cluster, owner):
    a_past_plan(owner, 5, 5, 5)
    plan = a_draft(cluster, owner)
    start(plan, actor=owner, reason="It is time.", expected_revision=1, override_reason="x", now=NOON)
    plan.refresh_from_db()

    left = expected(plan, plan_on_page(plan, now=NOON), now=NOON)

    assert left is not None
    assert "3 waves of 5 min (forecast of the start)" in left.sentence
