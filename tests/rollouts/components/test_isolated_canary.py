import json
import shlex

import pytest

from rollouts.components.isolated_canary import IsolatedCanary, isolated_canary


def offered(name: str = "default", **given) -> IsolatedCanary:
    """Where it can be done."""
    usual = {
        "kind": "NVIDIADriver",
        "is_fallback": True,
        "has_own_policies": True,
        "since": "26.7.0",
        "to_version": "580.126.20",
        "nodes": ["a", "b"],
    }
    return isolated_canary(name, **usual | given)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"kind": "ClusterPolicy"}, "one driver version for the whole cluster"),
        ({"has_own_policies": None}, "the operator's version is unknown"),
        ({"has_own_policies": False}, "26.7.0 or newer"),
        (
            {"is_fallback": False},
            "would conflict with it",
        ),
        ({"nodes": []}, "has no nodes"),
    ],
)
def test_where_it_cannot_be_done_it_says_why_and_offers_nothing(given: dict, reason: str):
    """Z4."""
    told = offered(**given)

    assert reason in told.reason
    assert not told.steps
    assert not told.rollback


def test_nodes_are_drained_before_their_labels_change():
    """Z4."""
    told = offered()
    verbs = [" ".join(step.command.split()[:2]) for step in told.steps]
    back = [" ".join(step.command.split()[:2]) for step in told.rollback]

    assert verbs == ["kubectl patch", "kubectl drain", "kubectl label", "kubectl wait", "kubectl uncordon"]
    assert back == ["kubectl drain", "kubectl label", "kubectl delete", "kubectl uncordon"]


def test_whatever_the_version_is_the_shell_sees_one_word():
    hostile = "580'; rm -rf / #"
    words = shlex.split(offered(to_version=hostile).steps[0].command)

    changes = json.loads(words[words.index("-p") + 1])

    assert {"op": "replace", "path": "/spec/version", "value": hostile} in changes


def test_the_name_is_a_label_value_too():
    told = offered("d" * 62)

    assert "quarterdeck.io/canary=" + "d" * 56 + "-canary" in told.steps[2].command
