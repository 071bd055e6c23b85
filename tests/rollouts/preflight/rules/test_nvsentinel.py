"""Z18: NVSentinel cordons nodes whose driver is replaced, unless it is told to leave them alone."""

import pytest

from rollouts.preflight.facts import NodeToChange
from rollouts.preflight.rules.nvsentinel import is_watching
from tests.rollouts.make import steps_of
from tests.rollouts.preflight.make import facts

OFF = {"k8saas.nvidia.com/ManagedByNVSentinel": "false"}


def said(*nodes: NodeToChange) -> dict:
    return {check.code: check for check in is_watching(facts(nodes=nodes))}


def test_without_nvsentinel_nothing_is_said():
    assert said(NodeToChange("a", labels={"nvidia.com/gpu.present": "true"})) == {}


@pytest.mark.parametrize(
    "label",
    [
        "dgxc.nvidia.com/nvsentinel-state",
        "nvsentinel.dgxc.nvidia.com/driver.installed",
        "k8saas.nvidia.com/ManagedByNVSentinel",
    ],
)
def test_a_node_that_it_watches_is_named_with_what_is_set_and_put_back(label):
    check = said(NodeToChange("a", labels={label: "true"}))["nvsentinel"]

    assert check.sentence == ("NVSentinel watches a. It takes a driver replacement for a fault and cordons the node.")
    assert "k8saas.nvidia.com/ManagedByNVSentinel=false" in steps_of(check)
    assert not check.is_grave


def test_a_node_that_it_leaves_alone_is_unwatched_while_gates_judge():
    check = said(NodeToChange("a", labels=OFF | {"dgxc.nvidia.com/nvsentinel-state": "x"}))

    assert list(check) == ["nvsentinel-off"]
    assert not check["nvsentinel-off"].is_grave
