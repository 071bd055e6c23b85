"""A promotion that goes well, from the draft to its last node, with the rights of quarterdeck.yaml and no more."""

from collections.abc import Callable

import pytest

from tests.flows.cluster import Cluster
from tests.flows.plans import APPROVED, Plan, canary, the_others
from tests.flows.rights import is_authorized_by_roles, refused_requests, rights_of_promotion, used_rights

pytestmark = pytest.mark.promote
Planner = Callable[..., Plan]


def test_goes_through_two_stages_to_its_end(plan_for: Planner, gpu_cluster: Cluster):
    plan = plan_for().draft(canary(), the_others(gate_options=APPROVED)).start().until_opening()
    held_at_first = gpu_cluster.held(plan.driver)
    plan.approve()
    plan.until(lambda shown: shown["stages"][1]["state"] == "opening", "the second stage")
    after_the_canary = plan.released()
    plan.approve(1)
    shown = plan.until_state("promoted")

    assert held_at_first == set(gpu_cluster.names(plan.driver))
    assert after_the_canary == list(plan.targets(0))
    assert set(gpu_cluster.loaded(plan.driver).values()) == {plan.to_version}
    assert plan.released() == plan.all_targets()
    assert gpu_cluster.marked() == set()
    assert shown["reason"] == "Every stage passed."
    if is_authorized_by_roles(gpu_cluster):
        assert refused_requests(plan) == []
        assert used_rights(plan) == rights_of_promotion()
