"""A node asks for another cut by label; its state label says how far that is."""

from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY
from simulator.actors.objects import is_true, labels, status
from simulator.faults import StuckMigChange
from simulator.kinds import NODE as NODES
from tests.simulator.actors.stage import a_mix

NODE = "gpu-h100-001"
ASK, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"


def an_empty_node(mix="h100=1"):
    """Tenants cannot run without the toolkit of their image: here there simply are none."""
    return a_mix(mix, 1, workloads=())


def states(stage):
    seen = []

    def note(_was, node):
        if node and node["metadata"]["name"] == NODE and seen[-1:] != [labels(node).get(STATE)]:
            seen.append(labels(node).get(STATE))

    stage.play.world[NODES].on_change(note)
    return seen


def test_a_new_cut_changes_capacity_and_labels():
    stage = an_empty_node()
    seen = states(stage)

    stage.label(NODE, **{ASK: "all-1g.10gb"})
    stage.run(120)

    assert seen == ["success", "pending", "success"]
    assert status(stage.node(NODE))["allocatable"]["nvidia.com/gpu"] == "56"
    assert labels(stage.node(NODE))["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"


def test_clients_are_paused_and_come_back():
    stage = an_empty_node()
    gate = "nvidia.com/gpu.deploy.device-plugin"

    stage.label(NODE, **{ASK: "all-balanced"})
    stage.run(5)
    during = labels(stage.node(NODE))[gate]
    stage.run(120)

    assert during == "paused-for-mig-change"
    assert labels(stage.node(NODE))[gate] == "true"
    assert is_true(stage.pods(NODE, "app=gpu-feature-discovery")[0], "Ready")


def test_a_cut_that_the_single_strategy_does_not_know_offers_nothing():
    stage = an_empty_node()

    stage.label(NODE, **{ASK: "all-balanced"})
    stage.run(120)

    assert status(stage.node(NODE))["allocatable"]["nvidia.com/gpu"] == "0"
    assert labels(stage.node(NODE))["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3-MIG-INVALID"


def test_a_configuration_that_is_in_no_file_fails():
    stage = an_empty_node()

    stage.label(NODE, **{ASK: "all-9g.99gb"})
    stage.run(30)

    assert labels(stage.node(NODE))[STATE] == "failed"
    assert status(stage.node(NODE))["allocatable"]["nvidia.com/gpu"] == "8"


def test_a_gpu_in_use_cannot_be_cut():
    stage = a_mix("h100=1", 2)
    stage.run(1)
    (tenant,) = stage.tenants(NODE)

    stage.label(NODE, **{ASK: "all-1g.10gb"})
    stage.run(120)

    assert labels(stage.node(NODE))[STATE] == "failed"
    assert status(stage.node(NODE))["allocatable"]["nvidia.com/gpu"] == "8"
    assert stage.tenants(NODE)[0]["metadata"]["uid"] == tenant["metadata"]["uid"]


def test_where_it_may_the_manager_reboots_the_node():
    stage = a_mix("h100=1", 2)
    policy = {"spec": {"migManager": {"env": [{"name": "WITH_REBOOT", "value": "true"}]}}}
    stage.store.patch(CLUSTER_POLICY, "cluster-policy", policy, how="merge")
    seen = states(stage)

    stage.label(NODE, **{ASK: "all-1g.10gb"})
    stage.run(60)
    is_down = not is_true(stage.node(NODE), "Ready")
    stage.run(240)

    assert is_down
    assert seen == ["success", "pending", "rebooting", "success"]
    assert status(stage.node(NODE))["allocatable"]["nvidia.com/gpu"] == "56"


def test_one_that_gave_up_leaves_all_paused_until_another_label_comes():
    stage = an_empty_node()
    stage.faults.put(StuckMigChange(NODE))
    gate = "nvidia.com/gpu.deploy.device-plugin"

    stage.label(NODE, **{ASK: "all-1g.10gb"})
    stage.run(600)
    stage.faults.clear()
    stage.run(600)
    stuck = labels(stage.node(NODE))
    is_offered = status(stage.node(NODE))["allocatable"]["nvidia.com/gpu"]
    stage.label(NODE, **{ASK: "all-3g.40gb"})
    stage.run(120)

    assert (stuck[STATE], stuck[gate], is_offered) == ("pending", "paused-for-mig-change", "0")
    assert (labels(stage.node(NODE))[STATE], labels(stage.node(NODE))[gate]) == ("success", "true")
    assert status(stage.node(NODE))["allocatable"]["nvidia.com/gpu"] == "16"
