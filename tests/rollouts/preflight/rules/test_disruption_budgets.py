"""Z30: which evictions the API server refuses, as it decides it."""

import pytest

from rollouts.checks import Check
from rollouts.preflight.rules.disruption_budgets import keep_pods, slow_down
from tests.rollouts.make import lines_of
from tests.rollouts.preflight.make import a_budget, a_pod, a_policy, facts


def hold_back(*pods, **given) -> list[Check]:
    seen = facts(*pods, **given)
    return [*keep_pods(seen), *slow_down(seen)]


def codes(*pods, **given) -> list[str]:
    return [check.code for check in hold_back(*pods, **given)]


def test_a_budget_that_allows_one_to_go_holds_nothing_back():
    assert codes(a_pod(), budgets=[a_budget()]) == []


def test_a_budget_that_allows_none_is_named_with_its_pod_and_what_the_operator_does():
    (check,) = hold_back(a_pod(), budgets=[a_budget(allowed=0, needed=2)])

    assert check.sentence == (
        "PodDisruptionBudgets block the eviction of team-a/model-0. The operator tries for 5 min, then the node fails."
    )
    assert lines_of(check) == ("team-a/model-0 on node-1: team-a/model needs 2 healthy and has 2",)
    assert check.may_be_overridden


def test_several_pods_and_budgets_make_one_check_that_names_each():
    pods = [a_pod(f"team-{each}/model-0") for each in "abcde"]
    budgets = [a_budget(namespace=f"team-{each}", allowed=0) for each in "abcde"]

    (check,) = hold_back(*pods, budgets=budgets)

    assert check.sentence == (
        "PodDisruptionBudgets block the eviction of 5 pods. The operator tries for 5 min, then the node fails."
    )
    assert len(lines_of(check)) == 5


def test_a_budget_that_is_not_counted_yet_allows_none():
    assert codes(a_pod(), budgets=[a_budget(allowed=None)]) == ["budget-allows-none"]


@pytest.mark.parametrize(
    ("pod", "budget"),
    [
        ({"is_pending": True}, {}),
        ({"is_ready": False}, {"evicts_unhealthy": True, "healthy": 0}),
        ({"is_ready": False}, {"healthy": 2, "needed": 2}),
        ({"resources": ()}, {}),
        ({"labels": {"app": "other"}}, {}),
        ({}, {"namespace": "team-b"}),
    ],
)
def test_who_is_not_asked_holds_nothing_back(pod, budget):
    assert codes(a_pod(**pod), budgets=[a_budget(**{"allowed": 0} | budget)]) == []


@pytest.mark.parametrize("budget", [{"healthy": 1, "needed": 2}, {"healthy": 0, "needed": 0}])
def test_an_unhealthy_pod_of_an_unhealthy_workload_stays(budget):
    assert codes(a_pod(is_ready=False), budgets=[a_budget(allowed=0, **budget)]) == ["budget-allows-none"]


def test_a_pod_of_several_budgets_is_never_evicted_whatever_they_allow():
    (check,) = hold_back(a_pod(is_ready=False), budgets=[a_budget(), a_budget("all", selector={})])

    assert check.title == "Several PodDisruptionBudgets select team-a/model-0"
    assert lines_of(check) == ("team-a/model-0 on node-1: team-a/model, team-a/all",)


def test_a_node_that_loses_more_at_once_than_is_allowed_waits():
    pods = [a_pod(f"team-a/model-{number}") for number in range(3)]

    (check,) = hold_back(*pods, a_pod("team-a/model-9", node="node-2"), budgets=[a_budget()])

    assert check.sentence == (
        "PodDisruptionBudgets slow down 1 node. The operator tries for 5 min, then the node fails."
    )
    assert lines_of(check) == ("node-1: 3 pods; team-a/model allows 1",)
    assert not check.is_grave


def test_budgets_that_nobody_sees_are_said_to_be_unknown():
    (check,) = hold_back(a_pod(), budgets_unseen="PodDisruptionBudgets may not be read here.")

    assert check.code == "budgets-unseen"
    assert check.summary == "PodDisruptionBudgets may not be read here."


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"podDeletion": {"timeoutSeconds": 0}}, "tries without an end, and the node stays cordoned."),
        ({"drain": {"enable": True, "timeoutSeconds": 60}}, "5 min, then it drains the whole node, for 1 min."),
        ({"drain": {"enable": True, "timeoutSeconds": 0}}, "then it drains the whole node, without an end."),
    ],
)
def test_how_long_it_tries_is_the_policys(policy, words):
    (check,) = hold_back(a_pod(), budgets=[a_budget(allowed=0)], policy=a_policy(**policy))

    assert check.summary.endswith(words)
