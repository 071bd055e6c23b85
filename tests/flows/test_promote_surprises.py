"""What others do to a cluster while a plan is under way in it."""

from collections.abc import Callable

import pytest

from tests.flows.cluster import Cluster
from tests.flows.plans import Plan, canary, is_hold, is_version_write, node_of, the_others

pytestmark = pytest.mark.promote
NEW = "gpu-a100-new"
Planner = Callable[..., Plan]


@pytest.mark.nightly
def test_a_foreign_change_of_the_version_halts_and_keeps_the_holds(plan_for: Planner, gpu_cluster: Cluster):
    """Z9."""
    plan = plan_for().draft().start().until_opening()
    gpu_cluster.change_driver(plan.driver, version="580.105.08")
    halted = plan.until_state("halted")

    assert "580.105.08" in halted["reason"]
    assert gpu_cluster.held(plan.driver) == set(gpu_cluster.names(plan.driver))
    assert len([asked for asked in plan.requests() if is_version_write(asked)]) == 1
    gpu_cluster.change_driver(plan.driver, version=plan.from_version)


def test_the_stop_config_map_stops_everything_until_it_is_gone(plan_for: Planner, gpu_cluster: Cluster):
    """Z33: with kubectl alone."""
    plan = plan_for().draft(canary()).start().until_opening()
    with gpu_cluster.stopped("A storm is coming"):
        plan.approve()
        shown = plan.until_said("A storm is coming")
        plan.until_looked_twice()
        while_stopped = plan.released()
    plan.until(lambda _: plan.released(), "a release after the stop was lifted")

    assert while_stopped == []
    assert shown["state"] == "promoting"


@pytest.mark.nightly
def test_another_quarterdeck_in_the_cluster_pauses_the_plan(plan_for: Planner, gpu_cluster: Cluster):
    """Z10."""
    plan = plan_for().draft(canary()).start().until_opening()
    gpu_cluster.take_lease("another-quarterdeck")
    plan.approve()
    paused = plan.until(lambda shown: shown["pause"], "a pause")
    plan.until_looked_twice()
    while_paused = plan.released()
    gpu_cluster.drop_lease()
    plan.notify("resumptions", "The other one is gone.")
    plan.until(lambda _: plan.released(), "a release after the resumption")

    assert "another-quarterdeck" in paused["pause"]["reason"]
    assert while_paused == []


@pytest.mark.nightly
def test_a_node_that_joins_in_the_middle_is_held(plan_for: Planner, gpu_cluster: Cluster):
    """Z4: it takes the new driver with its first pod, which no hold can keep from it, and stops nobody's plan."""
    plan = plan_for().draft().start().until_opening()
    like = gpu_cluster.names(plan.driver)[0]
    with gpu_cluster.joined(like, NEW):
        plan.until(lambda _: NEW in gpu_cluster.held(), "a late node that is held")
        plan.until(lambda _: gpu_cluster.loaded(plan.driver).get(NEW) == plan.to_version, "a late node with a driver")
        plan.until_looked_twice()
        shown = plan.now()

    # A write that lost against another is refused, and tried again: what counts is what was taken.
    taken = [node_of(asked) for asked in plan.requests() if is_hold(asked) and asked.code == 200]
    assert taken.count(NEW) == 1
    assert plan.released() == []
    assert shown["state"] == "promoting", shown["reason"]


@pytest.mark.nightly
def test_a_node_that_others_cordoned_is_left_out_and_left_cordoned(plan_for: Planner, gpu_cluster: Cluster):
    """Z6."""
    plan = plan_for()
    left_out, *others = gpu_cluster.names(plan.driver)
    with gpu_cluster.allowing(plan.driver, unavailable=2), gpu_cluster.cordoned(left_out):
        plan.draft(canary(max_unavailable=2), the_others(max_unavailable=2))
        plan.until(lambda _: left_out in excluded(plan), "a preview without the cordoned node")
        plan.start().until_opening().approve()
        plan.until_state("promoted")
        node = gpu_cluster.node(left_out)

    assert sorted(plan.released()) == others
    assert node.spec.unschedulable
    assert gpu_cluster.loaded(plan.driver) == dict.fromkeys(others, plan.to_version) | {left_out: plan.from_version}


def excluded(plan: Plan) -> set[str]:
    return {row["node"] for row in plan.operator.get(f"{plan.path}/preview")["excluded"]}
