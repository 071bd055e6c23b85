import pytest

from simulator.actors.dra.api import Api
from simulator.actors.gpu_operator.release import Release
from simulator.actors.loop import Loop
from simulator.actors.objects import is_true, labels, node_of, spec, status
from simulator.actors.play import Play
from simulator.actors.store_cluster import StoreCluster
from simulator.clock import Clock
from simulator.faults import Board
from simulator.fleets.mixes import EVERYTHING, KINDS, UnknownMix, mixed, shares
from simulator.fleets.planting import Planting
from simulator.kinds import DAEMON_SET, RESOURCE_CLAIM, RESOURCE_SLICE
from simulator.store import Store
from tests.simulator.actors.stage import Stage, a_mix

MODES = ("nvidia-driver", "cluster-policy", "gpu-cluster")


@pytest.mark.parametrize("nodes", [1, 14, 96, 500])
def test_shares_add_up_to_the_nodes(nodes):
    assert sum(shares(EVERYTHING, nodes).values()) == nodes


def test_the_mixed_fleet_has_every_kind_of_node():
    machines = mixed().machines

    assert {machine.name.removeprefix("gpu-").rpartition("-")[0] for machine in machines} == {*KINDS, "cpu"}


@pytest.mark.parametrize("mix", ["", "h100", "h100=many", "h100=0", "h200=1", "h100=-1", "h100=nan"])
def test_a_mix_of_nothing_is_refused(mix):
    with pytest.raises(UnknownMix):
        shares(mix, 8)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_left_to_do_once_a_mixed_fleet_is_planted(mode):
    store = Store(Clock())
    Planting(StoreCluster(store), mixed(nodes=28, mode=mode), store.clock.now()).plant()
    play = Play(StoreCluster(store), Loop(store.clock), Board(), dra=Api())
    play.fill()
    version = store.version

    while play.loop.turn():
        pass

    assert store.version == version


@pytest.mark.parametrize("mode", MODES)
def test_a_mixed_fleet_is_settled_before_anybody_plays(mode):
    stage = a_mix(EVERYTHING, 28, mode=mode)
    version = stage.store.version

    stage.run(50)

    assert stage.store.version == version
    assert all(is_true(pod, "Ready") for pod in stage.pods() if node_of(pod))


def test_somebodys_agent_sees_every_gpu_and_requests_none():
    stage = a_mix("h100=1,a100=1", 2)

    agents = [pod for pod in stage.pods() if pod["metadata"]["namespace"] == "observability"]

    assert sorted(node_of(agent) for agent in agents) == ["gpu-a100-001", "gpu-h100-001"]
    assert {spec(agent)["runtimeClassName"] for agent in agents} == {"nvidia"}
    assert not any("nvidia.com/gpu" in str(spec(agent)["containers"][0]["resources"]) for agent in agents)


@pytest.mark.parametrize(("release", "image"), [("v26.7.0", "v0.20.0"), ("v25.10.1", "v0.18.1")])
def test_operands_are_of_the_operators_release(release, image):
    stage = Stage.of(mixed(nodes=1, mix="h100=1", release=Release(release)), Board())

    (plugin,) = stage.pods(selector="app=nvidia-device-plugin-daemonset")

    assert plugin["spec"]["containers"][0]["image"].endswith(f":{image}")


def offers(stage, node):
    allocatable = status(stage.node(node))["allocatable"]
    return {key: count for key, count in allocatable.items() if "/" in key}


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("h100", {"nvidia.com/gpu": "8"}),
        ("mig-single", {"nvidia.com/gpu": "56"}),
        (
            "mig-mixed",
            {
                "nvidia.com/gpu": "0",
                "nvidia.com/mig-1g.10gb": "16",
                "nvidia.com/mig-2g.20gb": "8",
                "nvidia.com/mig-3g.40gb": "8",
            },
        ),
        (
            "mig-half",
            {
                "nvidia.com/gpu": "4",
                "nvidia.com/mig-1g.10gb": "8",
                "nvidia.com/mig-2g.20gb": "4",
                "nvidia.com/mig-3g.40gb": "4",
            },
        ),
        ("time-slicing", {"nvidia.com/gpu": "32"}),
        ("renamed", {"nvidia.com/gpu.shared": "32"}),
        ("mps", {"nvidia.com/gpu": "80"}),
        ("dra", {}),
        ("nvlink", {"nvidia.com/gpu": "4"}),
        ("amd", {"amd.com/gpu": "8"}),
        ("gaudi", {"habana.ai/gaudi": "8"}),
    ],
)
def test_each_kind_offers_what_its_plugin_makes_of_the_gpus(kind, wanted):
    stage = a_mix(f"{kind}=1", 1)

    assert offers(stage, f"gpu-{kind}-001") == wanted


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("h100", {"product": "NVIDIA-H100-80GB-HBM3", "count": "8", "replicas": "1", "sharing-strategy": "none"}),
        ("mig-single", {"product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "count": "56", "memory": "9984"}),
        ("mig-mixed", {"product": "NVIDIA-H100-80GB-HBM3", "count": "8", "replicas": "0", "memory": "81559"}),
        ("mig-half", {"product": "NVIDIA-A100-SXM4-80GB", "count": "8", "replicas": "1"}),
        (
            "time-slicing",
            {"product": "NVIDIA-A100-SXM4-80GB-SHARED", "replicas": "4", "sharing-strategy": "time-slicing"},
        ),
        ("renamed", {"product": "NVIDIA-A100-SXM4-80GB", "replicas": "4", "sharing-strategy": "time-slicing"}),
        ("mps", {"product": "NVIDIA-A100-SXM4-80GB-SHARED", "replicas": "10", "sharing-strategy": "mps"}),
    ],
)
def test_gfd_labels_each_kind_as_it_is(kind, wanted):
    stage = a_mix(f"{kind}=1", 1)

    has = labels(stage.node(f"gpu-{kind}-001"))

    assert {part: has[f"nvidia.com/gpu.{part}"] for part in wanted} == wanted


def test_a_mixed_cut_has_labels_of_each_profile():
    has = labels(a_mix("mig-mixed=1", 1).node("gpu-mig-mixed-001"))

    assert has["nvidia.com/mig-1g.10gb.count"] == "16"
    assert has["nvidia.com/mig-3g.40gb.product"] == "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb"
    assert has["nvidia.com/mig.strategy"] == "mixed"


def test_nodes_of_one_rack_share_an_nvlink_domain():
    stage = a_mix("nvlink=1", 20)

    cliques = [labels(stage.node(f"gpu-nvlink-{number:03}"))["nvidia.com/gpu.clique"] for number in (1, 18, 19)]

    assert cliques[0] == cliques[1] != cliques[2]


def test_a_claimed_node_has_no_label_of_gfd_but_a_slice_that_loses_leading_zeros():
    stage = a_mix("dra=1", 1)

    (held,) = stage.store.list(RESOURCE_SLICE)[0]
    device = spec(held)["devices"][0]

    assert not [key for key in labels(stage.node("gpu-dra-001")) if key.startswith("nvidia.com/cuda.")]
    assert len(spec(held)["devices"]) == 8
    assert device["attributes"]["driverVersion"] == {"version": "580.95.5"}
    assert device["attributes"]["productName"] == {"string": "NVIDIA H100 80GB HBM3"}


def test_every_claim_is_given_a_device_of_its_own_and_kept_for_its_pod():
    stage = a_mix("dra=1", 1)

    claims = stage.store.list(RESOURCE_CLAIM)[0]
    given = [status(claim)["allocation"]["devices"]["results"][0] for claim in claims]
    pods = {pod["metadata"]["uid"] for pod in stage.pods("gpu-dra-001", namespace="agents")}

    assert len({(each["pool"], each["device"]) for each in given}) == len(claims) == 7
    assert {claim["status"]["reservedFor"][0]["uid"] for claim in claims} == pods


def test_a_preinstalled_driver_has_no_driver_pod():
    stage = a_mix("preinstalled=1", 1)

    has = labels(stage.node("gpu-preinstalled-001"))

    assert has["nvidia.com/gpu.deploy.driver"] == "pre-installed"
    assert has["nvidia.com/cuda.driver-version.full"] == "570.172.08"
    assert not stage.pods("gpu-preinstalled-001", "app.kubernetes.io/component=nvidia-driver")


def test_a_gpu_cluster_runs_neither_plugin_nor_gfd():
    stage = a_mix("h100=1", 2, mode="gpu-cluster")

    names = {each["metadata"]["name"] for each in stage.store.list(DAEMON_SET)[0]}

    assert {"nvidia-dra-driver-kubelet-plugin", "nvidia-dra-validator", "nvidia-dcgm-exporter-dra"} < names
    assert not names & {"nvidia-device-plugin-daemonset", "gpu-feature-discovery", "nvidia-container-toolkit-daemonset"}
