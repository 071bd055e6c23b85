"""The engine asks the cluster's Prometheus for a service level, keeps the answer, and the gate halts the plan."""

import json
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

import pytest

from fleet.models import Node, PodPlacement
from rollouts.engine import service_levels
from rollouts.gates.slo import Slo
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import GateAnswer, ServiceLevelSample
from tests.health.telemetry.prometheus.a_server import a_server
from tests.make import NOON, a_source
from tests.rollouts.engine.ground import CANARY, REST, Ground
from tests.rollouts.make import a_service_level

pytestmark = pytest.mark.rounds
GATES: dict[str, dict[str, Any]] = {"driver_version": {}, "failure_budget": {}, "slo": {"baseline": "past"}}


class Service:
    """A Prometheus that knows how slow the service is; before the change it took 0.4 s."""

    def __init__(self, ground: Ground, url: str) -> None:
        self.ground, self.slow, self.asked = ground, 0.4, list[dict[str, str]]()
        self.released_at = float("inf")
        self.answers = True
        a_source(ground.cluster, url=url, matchers='cluster="eu-1"')

    def __call__(self, to: BaseHTTPRequestHandler) -> None:
        form = {key: value[0] for key, value in parse_qs(to.server.queries[-1]).items()}  # type: ignore[attr-defined]
        self.asked.append(form)
        at = float(form["time"])
        value = self.slow if at > self.released_at else 0.4
        parts = {"value": value, "samples": 500, "newest0": at - 10}
        rows = [{"metric": {"quarterdeck": name}, "value": [at, str(value)]} for name, value in parts.items()]
        body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": rows}}).encode()
        to.send_response(200 if self.answers else 503)
        to.send_header("Content-Length", str(len(body)))
        to.end_headers()
        to.wfile.write(body)

    def change_canary(self) -> None:
        self.ground.round()
        self.ground.take_the_new_driver(CANARY)
        self.ground.set_state(CANARY, "upgrade-done")
        self.ground.rounds(3)
        assert self.ground.target().state == TargetState.CHANGED
        self.released_at = self.ground.clock().timestamp()

    def soak(self, minutes: float = 6) -> GateAnswer:
        for _ in range(int(minutes * 2)):
            self.ground.clock.move(seconds=30)
            self.ground.round()
        return self.ground.stage().answers.get(gate="slo", is_current=True)


@pytest.fixture
def service(ground: Ground, settings):
    settings.TELEMETRY_LOOPBACK = True
    ground.armed(gates=GATES)
    ground.plan.stages.filter(index=0).update(timeout_s=3600)
    began = ground.clock() - timedelta(days=1)
    for name in (CANARY, *REST):
        node = Node.objects.get(name=name)
        PodPlacement.objects.create(
            cluster=node.cluster, node_uid=node.uid, node_name=name, pod_uid=f"pod-{name}", namespace="llm",
            name=f"llama-on-{name}", since=began,
        )  # fmt: skip
    made: list[Service] = []
    with a_server(lambda to: made[0](to)) as (url, _):
        made.append(Service(ground, url))
        yield made[0]


def test_a_service_that_is_slower_on_the_canary_halts_the_plan(service: Service):
    service.change_canary()
    assert service.soak(minutes=2).cause == "window"
    assert not service.asked
    service.slow = 0.9

    assert service.soak().cause == "unproved"
    assert service.ground.plan.state == PlanState.PROMOTING

    answer = service.soak()

    assert (answer.answer, answer.nodes) == ("fail", [CANARY])
    assert "The value is 0.9 s: 125 % worse than the baseline of 0.4. Worse windows: 2 of 2." in answer.sentence
    assert service.ground.plan.state == PlanState.HALTED
    now, before = service.asked[-2:]
    assert f'pod=~"llama-on-{CANARY}",cluster="eu-1"}}[300s]' in now["query"]
    assert float(before["time"]) < service.released_at


@pytest.mark.nightly
def test_a_service_as_fast_as_before_passes_and_is_asked_twice_a_minute(service: Service):
    service.change_canary()

    answer = service.soak()

    assert (answer.answer, answer.value_of("Value"), answer.value_of("Baseline (past)")) == ("pass", 0.4, 0.4)
    assert service.ground.stage().state == StageState.PASSED
    kept = ServiceLevelSample.objects.count()
    assert len(service.asked) == 2 * kept
    service.ground.round()
    assert ServiceLevelSample.objects.count() == kept


@pytest.mark.nightly
def test_a_source_that_falls_silent_holds_the_stage(service: Service):
    service.change_canary()
    service.answers = False

    answer = service.soak()

    assert (answer.answer, answer.cause) == ("wait", "source-silent")
    assert "(503)" in answer.value_of("Reason")
    assert service.ground.stage().state == StageState.SOAKING


@pytest.mark.nightly
def test_with_fewer_than_four_nodes_a_side_only_their_own_past_counts(service: Service):
    service.ground.plan.stages.filter(index=0).update(gate_options=GATES | {"slo": {"baseline": "peers"}})
    service.change_canary()

    assert service.soak().value_of("Baseline (past)") == 0.4
    now, past = (asked["query"] for asked in service.asked[-2:])
    assert "[5m]" in now or "[300s]" in now
    assert "[30m]" in past or "[1800s]" in past


@pytest.mark.nightly
def test_unchanged_nodes_with_the_same_gpus_are_the_other_baseline(service: Service, monkeypatch):
    monkeypatch.setattr(service_levels, "FEWEST_PEERS", 1)
    service.ground.plan.stages.filter(index=0).update(gate_options=GATES | {"slo": {"baseline": "peers"}})
    service.change_canary()

    answer = service.soak()

    assert answer.answer == "pass"
    assert answer.summary == "The value is compared with 2 unchanged nodes."
    peers = "|".join(f"llama-on-{name}" for name in sorted(REST))
    assert f'pod=~"{peers}"' in service.asked[-1]["query"]


def test_nodes_without_pods_are_no_proof(service: Service):
    PodPlacement.objects.all().delete()
    service.change_canary()

    assert service.soak().cause == "no-pods"
    assert not service.asked


def test_no_query_is_made_for_a_plan_without_the_gate(service: Service, django_assert_num_queries):
    service.ground.plan.stages.update(gate_options={"driver_version": {}})

    with django_assert_num_queries(1):
        assert not service_levels.measure_service_levels(service.ground.plan, now=service.ground.clock())


@pytest.mark.parametrize(("window_min", "kept"), [(5, [12, 24]), (720, [0, 12, 24])])
def test_windows_stay_until_enough_of_them_can_prove_a_difference(ground: Ground, window_min, kept):
    ground.armed()
    gate = Slo(window=timedelta(minutes=window_min))
    for hours in (0, 12, 24.01):
        at = NOON + timedelta(hours=hours)
        level = a_service_level(newest_at=at - timedelta(seconds=20))
        ServiceLevelSample.keep(ground.stage().pk, replace(level, asked_at=at), gate)

    windows = ServiceLevelSample.windows([ground.stage().pk])[ground.stage().pk, "slo"]

    assert [round((level.asked_at - NOON) / timedelta(hours=1)) for level in windows] == kept
    assert {level.nodes for level in windows} == {()}


@pytest.mark.nightly
def test_each_objective_of_a_stage_is_measured_and_judged_by_itself(service: Service):
    errors = {"expression": 'sum(errors{pod=~"{{pods}}"})', "at_most": 0.1, "at_most_worse_percent": 0}
    service.ground.plan.stages.filter(index=0).update(gate_options=GATES | {"slo_2": errors})
    service.change_canary()

    first = service.soak()
    second = service.ground.stage().answers.get(gate="slo_2", is_current=True)

    assert (first.answer, second.answer, second.cause) == ("pass", "fail", "out-of-limits")
    assert service.ground.plan.state == PlanState.HALTED
    assert set(ServiceLevelSample.objects.values_list("gate", flat=True)) == {"slo", "slo_2"}
    assert any("sum(errors" in asked["query"] for asked in service.asked)
