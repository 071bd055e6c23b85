from rollouts.preflight.rules.awaited_pods import are_waited_for
from tests.rollouts.preflight.make import a_pod, a_policy, facts


def checks(*pods, **waiting) -> list:
    return list(are_waited_for(facts(*pods, policy=a_policy(waitForCompletion=waiting))))


def test_what_nobody_waits_for_is_not_said():
    assert checks(a_pod()) == []
    assert checks(a_pod(), podSelector="app=other") == []


def test_waiting_without_an_end_is_grave():
    (check,) = checks(a_pod(), podSelector="app=model")

    assert check.title == "The operator waits without a limit for team-a/model-0"
    assert check.is_grave


def test_waiting_that_ends_is_said_with_its_end():
    (check,) = checks(a_pod(), a_pod("team-a/model-1"), podSelector="app=model", timeoutSeconds=7200)

    assert check.sentence == ("The operator waits 2 h for 2 pods. Then it evicts them.")


def test_a_selector_that_cannot_be_read_is_said():
    (check,) = checks(a_pod(), podSelector="a b")

    assert check.code == "waits-unread"
