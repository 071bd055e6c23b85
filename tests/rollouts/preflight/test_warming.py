"""Z16: models load anew wherever their pods go. What that takes is told before, and no gate takes it for a fault."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fleet.models import Bookmark, Node
from rollouts.checks import Check
from rollouts.commands.preview import preview
from rollouts.preflight.warm_up import warm_ups
from tests.make import NOON, a_pod
from tests.rollouts.make import lines_of, steps_of
from tests.rollouts.rows import CANARY, REST, a_draft

LLM = "ReplicaSet team-a/llm-5d"


def that_loads(minutes: float, node: str = "node-1", **given: Any):
    of = {"owner_kind": "ReplicaSet", "owner_name": "llm-5d", "started_at": NOON}
    loaded = NOON + timedelta(minutes=minutes)
    return a_pod(Node.objects.get(name=node), **{**of, "ready_since": loaded, **given})


def told(*pods) -> list[tuple[str, int, float]]:
    return [(one.workload, one.pods, one.took_s / 60) for one in warm_ups(pods)]


def test_of_a_workload_the_quickest_pod_counts_and_all_of_them_load_again(cluster):
    assert told(that_loads(45), that_loads(25), that_loads(0, is_ready=False)) == [(LLM, 3, 25)]


def test_the_longest_comes_first(cluster):
    other = {"owner_name": "chat-7c"}

    assert [name for name, _, _ in told(that_loads(3, **other), that_loads(25))] == [LLM, "ReplicaSet team-a/chat-7c"]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"minutes": 0.5}, id="it loads nothing that anybody waits for"),
        pytest.param({"restarts": 1}, id="its container was made again, so that Ready tells of that"),
        pytest.param({"is_ready": False}, id="it is not Ready: when it was last, nobody remembers"),
        pytest.param({"started_at": None}, id="no node has taken it"),
        pytest.param({"ready_since": None}, id="nothing says since when"),
        pytest.param({"minutes": -60}, id="clocks disagree"),
        pytest.param({"minutes": 241}, id="it was unready in between, as when its node came and went"),
        pytest.param({"is_tenant": False, "operand": "driver"}, id="it is of the GPU stack"),
    ],
)
def test_what_nobody_can_tell_is_not_told(cluster, given):
    assert told(that_loads(**{"minutes": 25, **given})) == []


def test_the_forecast_names_what_loads_and_how_long(cluster, owner):
    plan = a_draft(cluster, owner)
    that_loads(25)

    (one,) = preview(plan, now=NOON).forecast.warm_ups

    assert one.sentence == f"{LLM}: 25 min or more (1 pod)"


def test_where_pods_were_never_read_nobody_knows(cluster, owner):
    plan = a_draft(cluster, owner)
    Bookmark.objects.filter(cluster=cluster, kind="pods").update(listed_at=None, last_seen_at=None)

    assert preview(plan, now=NOON).forecast.warm_ups is None


def warned(cluster, owner, **workloads_ready: Any) -> list[Check]:
    gates = {"workloads_ready": workloads_ready}
    stages = [replace(stage, gate_options=stage.gate_options | gates) for stage in (CANARY, REST)]
    plan = a_draft(cluster, owner, stages=stages)
    return [check for check in preview(plan, now=NOON).warnings if check.code == "loads-longer"]


def test_a_gate_that_gives_them_less_is_named_before_the_start(cluster, owner):
    that_loads(25)

    (check,) = warned(cluster, owner)

    assert (check.is_grave, check.field) == (True, "stages.0.gate_options.workloads_ready")
    assert lines_of(check) == (f"{LLM}: 25 min or more (1 pod)",)
    assert check.title == "Pods of Canary load for longer than 10 min"
    assert steps_of(check) == "Set the option timeout_s of the gate to more than 25 min."


def test_of_several_the_time_is_the_most_that_one_took(cluster, owner):
    that_loads(25)
    that_loads(15, owner_name="chat-7c")

    (check,) = warned(cluster, owner)

    assert steps_of(check) == "Set the option timeout_s of the gate to more than 25 min."
    assert len(check.evidence) == 2


@pytest.mark.parametrize("option", [{"timeout_s": 1500}, {"tolerate": 1}, {"advisory": True, "reason": "Known."}])
def test_one_that_gives_them_as_long_or_halts_nothing_is_not(cluster, owner, option):
    that_loads(25)

    assert warned(cluster, owner, **option) == []
