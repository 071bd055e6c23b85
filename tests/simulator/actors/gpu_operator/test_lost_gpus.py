import pytest

from simulator.actors.objects import is_true, labels, status
from simulator.faults import FAULTS, Board, LostGpus, TaintedNode
from simulator.faults.board import UnknownFault, parse
from tests.simulator.actors.stage import a_fleet, a_mix

NODE = "gpu-h100-001"


def gpus(stage, node=NODE):
    return tuple(status(stage.node(node))[part]["nvidia.com/gpu"] for part in ("capacity", "allocatable"))


def test_a_gpu_that_falls_off_lowers_only_what_is_allocatable():
    stage = a_fleet(2, faults=Board(LostGpus(NODE)))

    stage.run(10)

    assert gpus(stage) == ("8", "7")
    assert labels(stage.node(NODE))["nvidia.com/gpu.count"] == "8"


def test_a_gpu_that_was_never_seen_lowers_both_and_its_label():
    stage = a_fleet(2, faults=Board(parse(FAULTS, f"lost_gpus:node={NODE},is_since_boot=true")))

    stage.run(10)

    assert gpus(stage) == ("7", "7")
    assert labels(stage.node(NODE))["nvidia.com/gpu.count"] == "7"


def test_all_can_be_gone_while_the_plugin_runs():
    stage = a_fleet(2, faults=Board(LostGpus(NODE, gpus=8)))

    stage.run(10)

    (plugin,) = stage.pods(NODE, "app=nvidia-device-plugin-daemonset")
    assert gpus(stage) == ("8", "0")
    assert is_true(plugin, "Ready")


def test_gpus_come_back():
    stage = a_fleet(2, faults=Board(LostGpus(NODE, 2, is_since_boot=True)))
    stage.run(10)

    stage.faults.clear("lost_gpus")
    stage.run(10)

    assert gpus(stage) == ("8", "8")
    assert labels(stage.node(NODE))["nvidia.com/gpu.count"] == "8"


def test_a_lost_gpu_takes_its_slices_with_it():
    stage = a_mix("mig-single=1", 1, faults=Board(LostGpus("gpu-mig-single-001")))

    stage.run(10)

    assert gpus(stage, "gpu-mig-single-001") == ("56", "49")


def test_operands_leave_a_node_whose_taint_they_do_not_tolerate():
    stage = a_fleet(2, faults=Board(TaintedNode(NODE, effect="NoExecute")))

    stage.run(60)
    left = [pod["metadata"]["name"] for pod in stage.pods(NODE)]
    stage.faults.clear("tainted_node")
    stage.run(240)

    assert left == []
    assert status(stage.node(NODE))["allocatable"]["nvidia.com/gpu"] == "8"
    assert not stage.node(NODE)["spec"].get("taints")


def test_a_taint_without_effect_is_refused():
    with pytest.raises(UnknownFault):
        parse(FAULTS, f"tainted_node:node={NODE},effect=Sometimes")
