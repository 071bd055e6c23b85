"""A promotion where the ClusterPolicy says the one version of the cluster, on a stack of its own."""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from demo.parts import BREAKS_WORKLOADS, FAULTY, KERNEL
from demo.stack import PASSWORD
from demo.visitor import Visitor, wait_until
from tests.flows.asked import Asked
from tests.flows.cluster import POLICY, ByPolicy
from tests.flows.conftest import FLEET
from tests.flows.lies import barred_by_each
from tests.flows.plans import APPROVED, Plan, canary, is_hold, node_of, the_others
from tests.flows.recorded import RecordedStack
from tests.patience import PATIENCE_S

pytestmark = [
    pytest.mark.promote,
    pytest.mark.nightly,  # the stack of its own costs a minute of CPU; engine/test_by_policy.py shows the decisions
    pytest.mark.skipif(
        "QUARTERDECK_TEST_KUBECONFIG" in os.environ, reason="the API server that is given has NVIDIADrivers"
    ),
]


@pytest.fixture(scope="module")
def by_policy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordedStack]:
    fleet = replace(FLEET, name="cluster-policy", nodes=NODES, faults=(BREAKS_WORKLOADS,))
    with RecordedStack(tmp_path_factory.mktemp("by-policy"), fleet) as running:
        yield running


@pytest.fixture(scope="module")
def in_it(by_policy: RecordedStack) -> Iterator[ByPolicy]:
    cluster = ByPolicy(by_policy.kubeconfig, by_policy.fleet.context)
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def two_people(by_policy: RecordedStack) -> tuple[Visitor, Visitor]:
    operator, approver, admin = (Visitor(by_policy.url, role).sign_in(PASSWORD) for role in PEOPLE)
    for cluster in admin.all("/api/v1/clusters"):
        admin.patch(f"/api/v1/clusters/{cluster['id']}", {"approval": "none", "reason": "Nobody's work is on it."})
    return operator, approver


@pytest.fixture
def plan(by_policy: RecordedStack, in_it: ByPolicy, two_people: tuple[Visitor, Visitor]) -> Iterator[Plan]:
    operator, approver = two_people
    made = Plan(POLICY, operator, approver, in_it, by_policy.proxy)
    yield made
    made.end()
    in_it.settle()
    assert not by_policy.bugs()


NODES = 8  # four with the newer kernel
PEOPLE = ("operator", "approver", "admin")


def is_policy_write(asked: Asked) -> bool:
    return asked.method == "PATCH" and asked.is_write and f"/clusterpolicies/{POLICY}" in asked.path


def test_every_gpu_node_is_held_then_the_policy_is_written_and_all_go(plan: Plan, in_it: ByPolicy):
    """Z1: the ClusterPolicy has one version for all."""
    plan.draft(canary(), the_others(max_unavailable=2)).start().until_opening()
    held_at_first = in_it.held()
    plan.approve()
    shown = plan.until_state("promoted")

    asked = plan.requests()
    written = next(number for number, one in enumerate(asked) if is_policy_write(one))
    assert {node_of(one) for one in asked[:written] if is_hold(one)} == held_at_first == set(in_it.names(POLICY))
    assert set(in_it.loaded(POLICY).values()) == {plan.to_version}
    assert sorted(plan.released()) == sorted(in_it.names(POLICY))
    assert in_it.marked() == set()
    assert shown["reason"] == "Every stage passed."


def test_what_only_the_cluster_knows_bars_a_start_that_touches_nothing(plan: Plan, in_it: ByPolicy):
    """Z2, Z10."""
    plan.draft(canary(), the_others())

    codes = barred_by_each(plan)

    assert codes == ["live-namespace", "live-rights", "live-version", "live-hold"]
    assert [asked for asked in plan.requests() if asked.is_write] == []
    assert in_it.marked() == set()
    assert in_it.version(POLICY) == plan.from_version


def test_a_driver_that_fails_on_one_kernel_halts_a_busy_canary_and_goes_back(plan: Plan, in_it: ByPolicy):
    """Z5, Z24: the page names the kernel, shows what a rollback does, and offers the gate that was missing."""
    in_it.run_alone("sweep", replicas=8 * NODES)
    wait_until(lambda: len(in_it.gpu_pods()) == NODES, what="tenants on every node", timeout_s=PATIENCE_S)
    with in_it.allowing(POLICY, unavailable="100%", maxParallelUpgrades=10):
        plan.draft(canary(4, max_unavailable=4), the_others(), to=FAULTY).start().until_opening()
        plan.approve()
        plan.until_state("halted")
        page = plan.until_shown(f"kernel {KERNEL}")
        offered = plan.page("gate-review")
        released = plan.released()
        plan.notify("rollbacks", "The pods of the canary do not run.")
        plan.until_state("rolled-back")

    assert "Probable cause: kernel" in page or "Candidates; too few nodes for proof" in page
    assert f"Rolls {len(released)} nodes back to {plan.from_version}" in page
    assert "Add to a new draft" in offered
    assert set(released) <= set(plan.targets(0))
    assert in_it.version(POLICY) == plan.from_version
    assert set(in_it.loaded(POLICY).values()) == {plan.from_version}
    assert in_it.marked() == set()


def test_a_driver_that_fails_on_one_kernel_halts_an_idle_canary_and_goes_back(plan: Plan, in_it: ByPolicy):
    """Z41: no tenant is there to fail, so that a test Job does."""
    in_it.run_alone()
    wait_until(lambda: not in_it.gpu_pods(), what="no tenants", timeout_s=PATIENCE_S)
    tested = APPROVED | {"test_job": {}}
    plan.draft(canary(2, gate_options=tested), the_others(), to=FAULTY).start().until_opening()
    plan.approve()
    halted = plan.until_state("halted")
    page, released = plan.page(), plan.released()
    plan.notify("rollbacks", "The test Jobs of the canary do not run.")
    plan.until_state("rolled-back")

    assert set(released) <= set(plan.targets(0))
    assert [said["answer"] for said in halted["stages"][0]["answers"] if said["gate"] == "test_job"] == ["fail"]
    assert f"kernel {KERNEL}" in page or "failed: nothing to compare" in page
    assert "back to" in page
    assert in_it.version(POLICY) == plan.from_version
    assert set(in_it.loaded(POLICY).values()) == {plan.from_version}
    assert in_it.marked() == set()
