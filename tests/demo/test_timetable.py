"""What happens in the demo is a pure function of its nodes, its seed and the minute."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.wait_reasons.early_reasons import WaitFacts
from capacity.wait_reasons.explanation import explain
from capacity.wait_reasons.node_index import NodeIndex
from capacity.wait_reasons.obstacles import CPU, MEMORY
from capacity.wait_reasons.requirements import read_pod
from demo.teams import H100, PRODUCT, lasting
from demo.timetable import ROUND_MIN, Scene, timetable
from fleet.observer.mirror.rows.pod import pod_row
from kube.structs import PodSeen
from simulator.faults import FAULTS
from simulator.faults.board import build
from tests.capacity.wait_reasons.clusters import a_node
from tests.make import NOON

NODES = [f"gpu-h100-{number:03}" for number in range(1, 33)]


def on_at(minute: float, scenes: list[Scene]) -> set[str]:
    """The faults of that minute."""
    return {scene.fault["key"] for scene in scenes if scene.fault and scene.is_on(minute)}


def test_the_same_seed_breaks_the_same_gpus_and_another_seed_others():
    assert timetable(NODES, 1) == timetable(list(reversed(NODES)), 1)
    assert timetable(NODES, 1) != timetable(NODES, 2)


@pytest.mark.parametrize(
    ("minute", "broken"),
    [
        (0.0, set()),
        (2.0, {"hot_gpu"}),
        (4.0, {"hot_gpu", "fallen_gpu"}),
        (13.0, {"fallen_gpu"}),
        (26.0, set()),
        (ROUND_MIN + 4.0, {"hot_gpu", "fallen_gpu"}),
    ],
)
def test_gpus_break_and_recover_by_the_minute(minute: float, broken: set[str]):
    assert on_at(minute, timetable(NODES, 1)) == broken


def test_what_teams_wait_for_is_there_all_the_time():
    lasting = timetable(NODES, 1)[0]

    assert lasting.made
    assert (lasting.begins_min, lasting.ends_min) == (0, ROUND_MIN)


def why(body: Any) -> tuple[str, str]:
    """Why a pod of a ReplicaSet waits on a full node of the demo."""
    spec = body["spec"]["template"]["spec"]
    meta = {"name": "x", "namespace": body["metadata"]["namespace"], "uid": "u", "creationTimestamp": NOON.isoformat()}
    seen = msgspec.json.encode({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
    row = pod_row(msgspec.json.decode(seen, type=PodSeen))
    requests = {**row["resources"], CPU: row["cpu_m"], MEMORY: row["memory_bytes"]}
    pod = read_pod(row["placement"], name="x/x", requests=requests, claims=row["claims"], created_at=NOON, labels={})
    full = a_node("gpu-1", used=8, labels={PRODUCT: H100})
    around = WaitFacts(claims=[], has_events="schedulerName" not in spec)  # nobody plays another scheduler
    found = explain(pod, NodeIndex([full]), around, now=NOON + timedelta(hours=1))
    return found.key, found.title


def test_pods_wait_each_for_another_reason():
    """The pods of `homework` wait for a quota, before the scheduler, and those of `left-open` for nothing."""
    made = [each.body for each in lasting() if each.body["kind"] == "ReplicaSet"]
    reasons = [why(body) for body in made if body["metadata"]["name"] not in ("homework", "left-open")]

    assert len(set(reasons)) == len(reasons) == 9


@given(st.integers(0, 2**31 - 1), st.integers(1, 40))
def test_what_breaks_is_never_among_the_nodes_that_a_plan_begins_with(seed: int, count: int):
    nodes = NODES[:count]

    broken = {scene.fault["node"] for scene in timetable(nodes, seed) if scene.fault}

    assert broken <= set(nodes[len(nodes) // 2 :])


@given(st.integers(0, 2**31 - 1))
def test_every_fault_is_one_that_the_simulator_knows(seed: int):
    for scene in timetable(NODES, seed):
        if scene.fault:
            settings = dict(scene.fault)
            assert build(FAULTS, settings.pop("key"), settings)


def test_without_such_nodes_only_teams_do_something():
    assert [bool(scene.fault) for scene in timetable([], 1)] == [False]
