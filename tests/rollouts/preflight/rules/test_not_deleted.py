"""Pods with which the operator does not empty a node."""

import pytest

from rollouts.checks import Check
from rollouts.preflight.rules.undeleted_pods import are_drained, fail_their_node
from tests.rollouts.make import lines_of, steps_of
from tests.rollouts.preflight.make import a_pod, a_policy, facts


def are_not_deleted(seen) -> list[Check]:
    return [*fail_their_node(seen), *are_drained(seen)]


def codes(*pods, **policy) -> list[str]:
    return [check.code for check in are_not_deleted(facts(*pods, policy=a_policy(**policy)))]


def test_an_ordinary_pod_is_deleted():
    assert codes(a_pod()) == []


def test_a_pod_without_a_controller_is_named_and_what_becomes_of_its_node():
    (check,) = are_not_deleted(facts(a_pod("team-a/notebook", owner_kind="")))

    assert check.sentence == "The operator does not delete team-a/notebook. Then its node fails."
    assert steps_of(check) == "Let the pods end, or delete them before the turn of their node."
    assert lines_of(check) == (
        "Cause: No controller, and podDeletion.force is off",
        "team-a/notebook: node node-1",
    )
    assert check.may_be_overridden


def test_each_reason_is_a_check_of_its_own():
    both = a_pod("team-a/both", owner_kind="", has_empty_dir=True)
    daemon = a_pod("team-a/daemon", owner_kind="DaemonSet")

    assert codes(both, daemon) == ["not-deleted-no-controller", "not-deleted-empty-dir", "not-deleted-daemon-set"]


def test_of_several_it_is_said_in_the_plural():
    pods = [a_pod(f"team-a/notebook-{number}", node=f"node-{number}", has_empty_dir=True) for number in range(2)]

    (check,) = are_not_deleted(facts(*pods))

    assert check.sentence == "The operator does not delete 2 pods. Then their nodes fail."


def test_what_the_policy_lets_it_delete_is_in_nobodys_way():
    pod = a_pod(owner_kind="", has_empty_dir=True)

    assert codes(pod, podDeletion={"force": True, "deleteEmptyDir": True}) == []


def test_a_pod_that_the_operator_does_not_evict_is_none_of_it():
    assert codes(a_pod(owner_kind="", resources=())) == []


DRAIN = {"enable": True, "force": True}
STAYS = "it stays and keeps the driver in use"


@pytest.mark.parametrize(
    ("pod", "drain", "words"),
    [
        ({}, DRAIN, "The whole node is drained instead"),
        ({}, {"enable": True}, "A drain follows, which refuses as well, and its node fails."),
        (
            {"labels": {"nvidia.com/gpu-driver-upgrade-drain.skip": "true"}},
            DRAIN,
            STAYS,
        ),
        ({}, DRAIN | {"podSelector": "app=other"}, STAYS),
        ({}, DRAIN | {"podSelector": "a b"}, STAYS),
        ({"owner_kind": "DaemonSet"}, DRAIN, STAYS),
    ],
)
def test_what_the_drain_does_that_follows_is_said(pod, drain, words):
    seen = facts(a_pod(**{"owner_kind": ""} | pod), policy=a_policy(drain=drain))

    (check,) = are_not_deleted(seen)

    assert words in check.summary
