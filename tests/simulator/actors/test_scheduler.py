"""Filter, spread, bind; and the words for what does not fit."""

from simulator.actors.objects import condition, node_of
from simulator.fleets.small import WAITING
from simulator.kinds import EVENT, NODE, POD
from tests.simulator.actors.stage import Stage, a_fleet


def an_empty_fleet(nodes: int = 2) -> Stage:
    """No tenants at all."""
    return a_fleet(nodes, workloads=())


def a_pod(stage: Stage, name: str, *, gpus: int = 1, priority: int = 0, **spec) -> None:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    container = {"name": "main", "image": "busybox:1.37", "resources": resources}
    spec = {"containers": [container], "priority": priority, **spec}
    stage.store.create(POD, {"metadata": {"name": name}, "spec": spec}, "default")


def where(stage: Stage, name: str) -> str:
    return node_of(stage.store.get(POD, name, "default"))


def why(stage: Stage, name: str) -> str:
    return condition(stage.store.get(POD, name, "default"), "PodScheduled").get("message", "")


def test_pods_spread_over_the_emptiest_nodes():
    stage = an_empty_fleet()

    for name in "abcd":
        a_pod(stage, name, gpus=2)
    stage.settle()

    assert sorted(where(stage, name) for name in "abcd") == ["gpu-a100-002"] * 2 + ["gpu-h100-001"] * 2


def test_an_extended_resource_is_never_overbooked():
    stage = an_empty_fleet()

    for index in range(5):
        a_pod(stage, f"p{index}", gpus=4)
    stage.settle()

    assert [where(stage, f"p{index}") for index in range(5)].count("") == 1


def test_says_why_no_node_would_do():
    stage = an_empty_fleet()
    stage.cordon("gpu-h100-001")

    a_pod(stage, "big", gpus=9, priority=-1)
    stage.settle()

    assert why(stage, "big") == (
        "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient nvidia.com/gpu. preemption: 0/4 nodes "
        "are available: 3 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    )
    listed, _, _ = stage.store.list(EVENT, "default", field_selector="involvedObject.name=big")
    assert [event["reason"] for event in listed] == ["FailedScheduling"]


def test_node_selector_and_required_affinity_are_kept():
    stage = an_empty_fleet()
    product = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-A100-SXM4-80GB"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [product]}]}

    a_pod(stage, "selected", nodeSelector={"kubernetes.io/hostname": "cpu-002"}, gpus=0)
    a_pod(stage, "drawn", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})
    stage.settle()

    assert where(stage, "selected") == "cpu-002"
    assert where(stage, "drawn") == "gpu-a100-002"


def test_an_empty_term_of_node_affinity_takes_no_node():
    stage = an_empty_fleet()

    required = {"nodeSelectorTerms": [{"matchExpressions": []}]}
    a_pod(stage, "nowhere", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})
    stage.settle()

    assert where(stage, "nowhere") == ""


def test_taints_keep_pods_away_unless_tolerated():
    stage = an_empty_fleet(1)
    taint = {"key": "dedicated", "value": "training", "effect": "NoSchedule"}
    stage.store.patch(NODE, "gpu-h100-001", {"spec": {"taints": [taint]}}, how="merge")
    stage.settle()

    a_pod(stage, "stranger")
    a_pod(stage, "guest", tolerations=[{"key": "dedicated", "operator": "Exists"}])
    stage.settle()

    assert where(stage, "stranger") == ""
    assert "1 node(s) had untolerated taint {dedicated: training}" in why(stage, "stranger")
    assert where(stage, "guest") == "gpu-h100-001"


def test_a_node_is_counted_for_the_first_filter_that_rejects_it():
    """In the order of kube-scheduler's plugins: NodeUnschedulable, TaintToleration, NodeAffinity, NodeResourcesFit."""
    stage = an_empty_fleet(2)
    taint = {"key": "dedicated", "value": "training", "effect": "NoSchedule"}
    cordoned = {"spec": {"unschedulable": True, "taints": [taint]}}
    stage.store.patch(NODE, "gpu-h100-001", cordoned, how="merge")
    stage.store.patch(NODE, "gpu-a100-002", {"spec": {"taints": [taint]}}, how="merge")
    stage.settle()

    a_pod(stage, "stranger", nodeSelector={"zone": "nowhere"}, gpus=16)
    stage.settle()

    assert "1 node(s) had untolerated taint {dedicated: training}" in why(stage, "stranger")
    assert "1 node(s) were unschedulable" in why(stage, "stranger")


def test_gated_pods_and_those_of_other_schedulers_are_left_alone():
    stage = an_empty_fleet(1)

    a_pod(stage, "gated", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    a_pod(stage, "other", schedulerName="volcano")
    a_pod(stage, "usual", schedulerName="default-scheduler")
    stage.settle()

    assert [where(stage, name) for name in ("gated", "other")] == ["", ""]
    assert where(stage, "usual") == "gpu-h100-001"


def test_a_freed_gpu_is_taken_by_who_waits_longest():
    stage = an_empty_fleet(1)
    a_pod(stage, "first", gpus=8)
    stage.run(1)
    a_pod(stage, "second", gpus=8)
    stage.run(5)
    a_pod(stage, "third", gpus=8)
    stage.run(5)

    stage.store.delete(POD, "first", "default")
    stage.run(20)

    assert (where(stage, "second"), where(stage, "third")) == ("gpu-h100-001", "")


def test_an_important_pod_pushes_the_least_aside():
    stage = an_empty_fleet(1)
    a_pod(stage, "middle", gpus=4, priority=5)
    a_pod(stage, "low", gpus=4, priority=-5)
    stage.run(20)

    a_pod(stage, "high", gpus=4, priority=10)
    stage.run(20)

    assert where(stage, "high") == where(stage, "middle") == "gpu-h100-001"
    assert "low" not in [pod["metadata"]["name"] for pod in stage.pods(namespace="default")]


def test_room_that_was_made_is_kept_for_whom_it_was_made():
    stage = an_empty_fleet(1)
    for index in range(8):
        a_pod(stage, f"low{index}", priority=-5)
    stage.run(20)
    for index in range(4):
        a_pod(stage, f"waiting{index}", priority=-5)
    stage.run(1)

    a_pod(stage, "high", gpus=8, priority=10)
    stage.run(20)

    assert where(stage, "high") == "gpu-h100-001"


def test_a_queue_takes_every_gpu_that_is_left_over():
    stage = a_fleet(4)

    free = [pod for pod in stage.pods(namespace="batch") if not node_of(pod)]
    used = sum(1 for pod in stage.pods() for _ in range(_gpus(pod)) if node_of(pod))

    assert used == 4 * 8
    assert len(free) == WAITING


def _gpus(pod: dict) -> int:
    limits = pod["spec"]["containers"][0].get("resources", {}).get("limits", {})
    return int(limits.get("nvidia.com/gpu", "0"))
