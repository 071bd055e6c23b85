import pytest

from simulator.actors.objects import is_true, labels, node_of
from simulator.fleets.packing import packed
from simulator.fleets.plan import Mode
from simulator.fleets.small import KERNELS, cluster_policy, small
from simulator.kinds import NODE
from tests.simulator.actors.stage import a_fleet


@pytest.mark.parametrize("nodes", [1, 2, 3, 8, 64, 200])
def test_all_gpus_are_taken_and_only_the_queue_waits(nodes):
    plan = small(nodes=nodes)

    placed = packed(plan.workloads, plan.machines)

    assert sum(each.workload.gpus for each in placed if each.node) == 8 * nodes
    assert {each.workload.priority for each in placed if not each.node} == {"queue"}


def test_the_default_fleet_has_512_gpus_of_two_skus_on_two_kernels_in_two_zones():
    machines = [machine for machine in small().machines if machine.sku]

    assert sum(machine.gpus for machine in machines) == 512
    for sku in {machine.sku for machine in machines}:
        mine = [machine for machine in machines if machine.sku is sku]
        assert len(mine) == 32
        assert {machine.kernel for machine in mine} == set(KERNELS)
        assert {machine.zone for machine in mine} == {"region-1a", "region-1b"}


def test_a_seed_gives_the_same_fleet_again():
    assert small(nodes=9, seed=3) == small(nodes=9, seed=3)
    assert small(nodes=9, seed=3) != small(nodes=9, seed=4)


def test_no_pod_of_a_service_shares_its_name_with_another():
    names = [workload.name for workload in small(nodes=200).workloads]

    assert len(names) == len(set(names))


def test_a_planted_fleet_is_settled_before_anybody_plays():
    stage = a_fleet(4)
    version = stage.store.version

    stage.run(50)

    assert stage.store.version == version
    assert all(is_true(pod, "Ready") for pod in stage.pods() if node_of(pod))


def test_a_cpu_node_has_no_gpu_label():
    stage = a_fleet(2)

    cpu = stage.store.get(NODE, "cpu-001")

    assert not [key for key in labels(cpu) if key.startswith("nvidia.com/")]


def test_pods_that_have_nothing_to_do_with_gpus_are_on_nodes_without():
    stage = a_fleet(2)

    pods = [pod for space in ("kube-system", "web") for pod in stage.pods(namespace=space)]

    assert len(pods) == 6
    assert all(node_of(pod).startswith("cpu-") and is_true(pod, "Ready") for pod in pods)
    assert all(pod["spec"]["containers"][0]["resources"]["requests"] for pod in pods)


def test_where_the_policy_says_the_driver_no_node_has_another_owner():
    plan = cluster_policy(nodes=9)

    assert plan.mode is Mode.CLUSTER_POLICY
    assert not plan.drivers
    assert len(plan.machines) == len(small(nodes=9).machines)
