"""One sentence for each way in which a pod waits."""

from dataclasses import replace
from datetime import timedelta

import pytest

from capacity.wait_reasons.amounts import amount_text
from capacity.wait_reasons.answers import Actor, FunnelStep
from capacity.wait_reasons.early_reasons import ClaimFacts
from capacity.wait_reasons.node_index import UNKNOWN_LIMIT
from capacity.wait_reasons.obstacles import CPU, MEMORY, PODS
from tests.capacity.wait_reasons.clusters import GIB, GPU, GPU_TAINT, PRODUCT, a_node, a_pod, explained
from tests.make import NOON
from tests.pages import HOSTILE

H100 = {PRODUCT: "NVIDIA-H100-80GB-HBM3"}


def said(found) -> str:
    return f"{found.title}. {found.summary}".strip()


def texts(found) -> list[tuple[str, str, int, int]]:
    return [(change.text, change.actor.value, change.fits_now, change.fits_later) for change in found.changes]


def test_too_few_gpus():
    found = explained(a_pod(gpus=4), a_node("a", used=7), a_node("b", used=6))

    assert found.key == "no_room"
    assert said(found) == (
        "Too few free GPUs: the pod requests 4 GPUs. 2 nodes qualify. 3 GPUs are free there in total."
    )
    assert found.near_summary == "1 node lacks only 2 GPUs."
    assert found.near_misses[0].node.name == "b"
    assert found.near_misses[0].lacks == ["2 GPUs free of 4 GPUs"]
    assert texts(found) == [
        ("Request at most 2 GPUs per pod.", "pod owner", 1, 2),
        ("Wait until other pods end.", "nobody", 0, 2),
        ("Add nodes like these.", "cluster admin", 0, 0),
    ]


def test_nodes_that_offer_shares_as_gpus_are_counted():
    whole, shared = a_node("a", gpus=16, used=12), a_node("b", gpus=16, used=9, parts=frozenset({GPU}))

    found = explained(a_pod(gpus=16), whole, shared)

    assert found.near_summary.endswith(" 1 of 2 nodes with 16 GPUs offers them as shares or slices of GPUs.")
    assert found.near_misses[0].lacks == ["7 GPUs free of 16 GPUs, as shares or slices"]


def test_a_change_counts_the_nodes_that_qualify_without_it():
    taint = {"key": "team", "value": "vision", "effect": "NoSchedule"}
    tainted = [a_node(f"t{number}", used=8, taints=[taint]) for number in range(3)]

    found = explained(a_pod(gpus=4), a_node("a", used=6), *tainted, a_node("small", gpus=2))

    assert texts(found) == [
        ("Request at most 2 GPUs per pod.", "pod owner", 2, 2),
        ("Wait until other pods end.", "nobody", 0, 1),
        ("Tolerate the taint team=vision:NoSchedule in the pod template.", "pod owner", 0, 4),
        ("Add nodes like these.", "cluster admin", 0, 0),
    ]


def test_no_gpu_is_free():
    found = explained(a_pod(), a_node("a", used=8))

    assert said(found) == "Too few free GPUs: the pod requests 1 GPU. 1 node qualifies. It has no free GPU."


def test_fragmented():
    found = explained(a_pod(gpus=8), *[a_node(f"n{number}", used=3) for number in range(3)], a_node("big", used=2))

    assert found.key == "fragmented"
    assert said(found) == (
        "Free GPUs are spread over nodes: none has 8 GPUs. 4 nodes qualify. 21 GPUs are free on 4 of them, at most 6 "
        "on one (big)."
    )
    assert found.near_summary == "1 node lacks only 2 GPUs."
    assert found.is_waiting


def test_a_node_with_room_that_is_cordoned_is_named_before_waiting_helps():
    found = explained(a_pod(), a_node("a", used=8), a_node("b", is_cordoned=True))

    assert ("Uncordon b.", "cluster admin", 1, 2) in texts(found)


def test_all_qualifying_nodes_are_cordoned():
    found = explained(a_pod(), a_node("a", is_cordoned=True), a_node("cpu", gpus=0))

    assert said(found) == "The only node that qualifies is cordoned. It is a."
    assert texts(found) == [("Uncordon a.", "cluster admin", 1, 1)]


def test_a_label_that_no_gpu_node_has():
    pod = a_pod(placement={"node_selector": {PRODUCT: "NVIDIA-H200"}})
    found = explained(pod, a_node("a", labels=H100), a_node("b", labels=H100))

    assert found.key == "matches_no_node"
    assert said(found) == (
        f"No GPU node has the label {PRODUCT}=NVIDIA-H200. Nodes have the value NVIDIA-H100-80GB-HBM3."
    )
    assert texts(found) == [(f"Remove {PRODUCT}=NVIDIA-H200 from the node selector.", "pod owner", 2, 2)]


def test_a_misspelled_label_value_is_recognized():
    pod = a_pod(placement={"node_selector": {PRODUCT: "NVIDIA-H100-80GB-HMB3"}})

    found = explained(pod, a_node("a", labels=H100), a_node("b", labels=H100, used=8))

    assert "Nearest spelling: NVIDIA-H100-80GB-HBM3." in found.summary
    assert texts(found)[0] == (f"Correct the label to {PRODUCT}=NVIDIA-H100-80GB-HBM3.", "pod owner", 1, 2)


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ("NVIDIA-H200", "NVIDIA-GB200"),
        ("NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB"),
        ("NVIDIA-L40-SHARED", "NVIDIA-L40S-SHARED"),
    ],
)
def test_another_product_is_no_correction(wanted, there):
    pod = a_pod(placement={"node_selector": {PRODUCT: wanted}})

    found = explained(pod, a_node("a", labels={PRODUCT: there}))

    assert found.summary == f"Nodes have the value {there}."
    assert texts(found) == [(f"Remove {PRODUCT}={wanted} from the node selector.", "pod owner", 1, 1)]


def test_a_label_key_that_no_node_has():
    pod = a_pod(placement={"node_selector": {"rack": "r1"}})

    assert said(explained(pod, a_node("a"))) == "No GPU node has the label rack=r1. No node has the label rack."


def test_a_label_of_nodes_without_gpus():
    pod = a_pod(placement={"node_selector": {"zone": "b"}})
    found = explained(pod, a_node("a", labels={"zone": "a"}), a_node("cpu", gpus=0, labels={"zone": "b"}))

    assert found.summary == "Only nodes without these GPUs have it."


def test_labels_that_no_node_has_together():
    pod = a_pod(placement={"node_selector": {"zone": "a", "rack": "r1"}})
    nodes = (a_node("a", labels={"zone": "a", "rack": "r2"}), a_node("b", labels={"zone": "b", "rack": "r1"}))

    assert said(explained(pod, *nodes)) == (
        "No GPU node has all of rack=r1, zone=a. Each label exists, but no node has all of them."
    )


def test_an_affinity_that_no_gpu_node_matches():
    term = [{"key": "zone", "operator": "NotIn", "values": ["a"]}]
    found = explained(a_pod(placement={"node_affinity": [term]}), a_node("a", labels={"zone": "a"}))

    assert found.title == "No GPU node matches the node affinity: zone not in (a)"
    assert texts(found) == [("Change the node affinity (zone not in (a)).", "pod owner", 1, 1)]


def test_a_taint_that_the_pod_does_not_tolerate():
    taint = {"key": "team", "value": "vision", "effect": "NoSchedule"}
    found = explained(a_pod(), a_node("a", taints=[GPU_TAINT, taint]), a_node("b", taints=[taint]))

    assert said(found) == (
        "The pod does not tolerate the taint team=vision:NoSchedule. 2 nodes that otherwise qualify have it."
    )
    assert texts(found) == [("Tolerate the taint team=vision:NoSchedule in the pod template.", "pod owner", 2, 2)]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("karpenter.sh/unregistered", "Wait: Karpenter removes its taint once a has registered."),
        ("karpenter.sh/disrupted", "Wait for other nodes: Karpenter removes a."),
        ("ToBeDeletedByClusterAutoscaler", "Wait for other nodes: the cluster autoscaler removes a."),
    ],
)
def test_a_taint_of_a_controller_is_waited_for_and_not_tolerated(key, text):
    found = explained(a_pod(), a_node("a", taints=[{"key": key, "value": "1", "effect": "NoExecute"}]))

    assert [each[:2] for each in texts(found)] == [(text, "nobody")]


def test_a_taint_of_kubernetes_is_repaired_and_not_tolerated():
    taint = {"key": "node.kubernetes.io/not-ready", "value": "", "effect": "NoSchedule"}
    found = explained(a_pod(), a_node("a", taints=[taint]))

    assert texts(found) == [
        ("Repair a. Kubernetes sets the taint node.kubernetes.io/not-ready:NoSchedule.", "cluster admin", 1, 1)
    ]


@pytest.mark.parametrize(
    ("product", "offered", "summary", "step"),
    [
        (
            "NVIDIA-A100-SXM4-80GB", "3g.40gb",
            (
                "No product here has this profile. NVIDIA-A100-SXM4-80GB can offer 4g.40gb. Nodes offer "
                "nvidia.com/mig-3g.40gb."
            ),
            "Add nodes whose GPUs have the MIG profile 4g.71gb.",
        ),
        (
            "NVIDIA-H200", "3g.71gb", "Nodes offer nvidia.com/mig-3g.71gb.",
            "Give a node the MIG profile 4g.71gb, by its label nvidia.com/mig.config.",
        ),
    ],
)  # fmt: skip
def test_a_profile_that_no_product_has_is_not_proposed(product, offered, summary, step):
    mixed = {f"nvidia.com/mig-{offered}": 2, CPU: 128_000, MEMORY: 1024 * GIB}
    pod = a_pod(requests={"nvidia.com/mig-4g.71gb": 1})

    found = explained(pod, a_node("a", allocatable=mixed, labels={PRODUCT: product}))

    assert found.summary == summary
    assert found.changes[-1].text == step


def test_more_gpus_than_any_node_has():
    found = explained(a_pod(gpus=16), a_node("a"), a_node("b", gpus=4))

    assert said(found) == "No node has 16 GPUs. The pod requests them on one node. The largest node has 8 GPUs."
    assert texts(found) == [("Request at most 8 GPUs per pod.", "pod owner", 1, 1)]


def test_more_gpus_than_the_qualifying_nodes_have():
    pod = a_pod(gpus=8, placement={"node_selector": {"zone": "a"}})
    found = explained(pod, a_node("a", gpus=4, labels={"zone": "a"}), a_node("b", labels={"zone": "b"}))

    assert said(found) == "No qualifying node has 8 GPUs. 1 node qualifies otherwise. The largest has 4 GPUs."
    assert ("Request at most 4 GPUs per pod.", "pod owner", 1, 1) in texts(found)
    assert ("Remove zone=a from the node selector.", "pod owner", 1, 1) in texts(found)


def test_a_device_plugin_that_is_down():
    down = a_node("a", allocatable={GPU: 0, CPU: 128_000, MEMORY: 1024 * GIB}, expected={GPU: 8})

    assert said(explained(a_pod(), down)) == "No node offers nvidia.com/gpu now. 1 node offered it before: a."


def test_a_mig_profile_that_no_node_has():
    mixed = {"nvidia.com/mig-3g.40gb": 2, CPU: 128_000, MEMORY: 1024 * GIB}
    pod = a_pod(requests={"nvidia.com/mig-1g.10gb": 1})
    found = explained(pod, a_node("a", allocatable=mixed, expected={}))

    assert said(found) == "No node offers nvidia.com/mig-1g.10gb. Nodes offer nvidia.com/mig-3g.40gb."
    assert found.near_misses == []  # a node without such slices is not near
    assert [change.actor for change in found.changes] == [Actor.OWNER, Actor.ADMIN]
    assert "MIG profile 1g.10gb" in found.changes[1].text


@pytest.mark.parametrize(
    ("wanted", "other"),
    [
        ("nvidia.com/mig-1g.10gb", "amd.com/cpx_nps4"),
        ("nvidia.com/mig-1g.10gb", "nvidia.com/GA102GL_A10"),
        ("amd.com/gpu", "amd.com/cpx_nps4"),
        (GPU, "nvidia.com/mig-1g.5gb"),
    ],
)
def test_units_without_a_size_and_smaller_ones_are_not_proposed(wanted, other):
    node = a_node("a", allocatable={other: 8, CPU: 128_000, MEMORY: 1024 * GIB}, expected={})

    found = explained(a_pod(requests={wanted: 1}), node)

    assert not any("in place of" in change.text for change in found.changes)


def test_a_sliver_of_memory_is_not_proposed():
    node = a_node("a", requested={MEMORY: 1024 * GIB - 2**20})

    found = explained(a_pod(requests={GPU: 1, MEMORY: 512 * GIB}), node)

    assert found.changes[0].text == "Wait until other pods end."
    assert not any("Request at most" in change.text for change in found.changes)


def test_gpus_are_free_but_the_cpu_is_not():
    full = {GPU: 2, CPU: 126_000}
    found = explained(a_pod(gpus=4), a_node("a", requested=full), a_node("b", used=8))

    assert found.key == "no_cpu"
    assert said(found) == "No node with free GPUs has 4 CPUs free. 1 node has the GPUs free, with at most 2 CPUs free."
    assert texts(found) == [
        ("Request at most 2 CPUs per pod.", "pod owner", 1, 2),
        ("Wait until other pods end.", "nobody", 0, 2),
        ("Add nodes like these.", "cluster admin", 0, 0),
    ]


def test_a_change_that_fits_now_comes_first_and_one_of_the_owner_before_one_of_an_admin():
    """Half of the request or more is asked before less than half."""
    taint = {"key": "team", "value": "vision", "effect": "NoSchedule"}
    free = a_node("cordoned", is_cordoned=True)
    found = explained(a_pod(gpus=8), a_node("a", used=5), free, a_node("tainted", taints=[taint]))

    assert texts(found) == [
        ("Tolerate the taint team=vision:NoSchedule in the pod template.", "pod owner", 1, 2),
        ("Request at most 3 GPUs per pod.", "pod owner", 1, 1),
        ("Uncordon cordoned.", "cluster admin", 1, 2),
        ("Wait until other pods end.", "nobody", 0, 1),
        ("Add nodes like these.", "cluster admin", 0, 0),
    ]


def test_a_smaller_request_that_fits_now_is_named_beside_the_largest_that_a_node_has():
    found = explained(a_pod(requests={GPU: 1, CPU: 500_000}), a_node("a", requested={CPU: 28_000}))

    assert texts(found) == [
        ("Request at most 100 CPUs per pod.", "pod owner", 1, 1),
        ("Request at most 128 CPUs per pod.", "pod owner", 0, 1),
    ]


@pytest.mark.parametrize(("gpus", "is_proposed"), [(1, True), (2, False)])
def test_several_shares_are_not_proposed_for_several_gpus(gpus, is_proposed):
    shared = a_node("a", gpus=32, labels={PRODUCT: "A100-SHARED"}, parts=frozenset({GPU}))
    found = explained(a_pod(gpus=gpus, placement={"node_selector": {PRODUCT: "H100"}}), shared, a_node("b", gpus=0))

    assert any(each.text.startswith("Remove") for each in found.changes) is is_proposed


def test_a_resource_that_nodes_offer_is_named_with_its_nodes():
    """A share, and a slice with less memory, are not proposed; one on which the pod fits now comes first."""
    small, same, large = (f"nvidia.com/mig-{profile}" for profile in ("1g.18gb", "3g.71gb", "4g.71gb"))
    room = {CPU: 128_000, MEMORY: 1024 * GIB}
    pod = a_pod(requests={large: 1})
    nodes = [
        a_node("full", allocatable=room | {same: 2}, requested={same: 2}),
        a_node("small", allocatable=room | {small: 7}),
        a_node("whole", allocatable=room | {GPU: 8, "amd.com/gpu": 8, f"{GPU}.shared": 80}),
    ]

    found = explained(pod, *nodes)

    assert texts(found)[:2] == [
        (f"Request 1 GPU ({GPU}) in place of {large}.", "pod owner", 1, 1),
        (f"Request 1 slice 3g.71gb ({same}) in place of {large}.", "pod owner", 0, 1),
    ]
    assert len(found.changes) == 3


def test_the_usual_scheduler_is_proposed_first_where_it_would_place_the_pod():
    pod = a_pod(placement={"scheduler": "volcano"}, created_at=NOON - timedelta(hours=1))

    placed, full = explained(pod, a_node("a")), explained(pod, a_node("a", used=8))

    assert texts(placed)[0] == ("Set schedulerName to default-scheduler in the pod template.", "pod owner", 1, 1)
    assert (full.changes[0].actor, full.changes[1].fits_later) == (Actor.ADMIN, 1)


def test_gpus_are_free_but_their_node_has_as_many_pods_as_its_kubelet_allows():
    """NodeResourcesFit of kube-scheduler: "Too many pods"."""
    message = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 Too many pods."
    pod = a_pod(requests={GPU: 4, PODS: 1}, message=message)
    room = {GPU: 8, CPU: 128_000, MEMORY: 1000 * GIB, PODS: 110}
    full, used = a_node("full", allocatable=room, requested={PODS: 110}), a_node("used", used=8, allocatable=room)

    found = explained(pod, full, used)

    assert (found.key, found.agreement_ratio, found.is_waiting) == ("too_many_pods", 1.0, True)
    assert said(found) == (
        "No node with free GPUs has room for one more pod. "
        "1 node has the GPUs free, but as many pods as its kubelet allows."
    )
    assert texts(found) == [
        ("Raise maxPods of the kubelet on full.", "cluster admin", 1, 2),
        ("Wait until other pods end.", "nobody", 0, 2),
        ("Add nodes like these.", "cluster admin", 0, 0),
    ]
    assert found.funnel[-1] == FunnelStep("Have room for 1 more pod", 0, 1)
    assert {miss.node.name: list(miss.lacks) for miss in found.near_misses}["full"] == [
        "room for one more pod: it has 110 of 110"
    ]


@pytest.mark.parametrize(
    ("own", "others", "key", "title"),
    [
        ({MEMORY: 999 * GIB}, {PODS: 110}, "too_many_pods", "3 of 4 nodes with free GPUs lack room for 1 more pod"),
        ({PODS: 110}, {MEMORY: 999 * GIB}, "no_memory", "3 of 4 nodes with free GPUs lack 32 GiB of memory"),
    ],
)
def test_nodes_with_free_gpus_that_lack_different_amounts_are_counted_apart(own, others, key, title):
    room = {GPU: 8, CPU: 128_000, MEMORY: 1000 * GIB, PODS: 110}
    crowd = [a_node(name, allocatable=room, requested=others) for name in "abc"]
    pod = a_pod(requests={GPU: 4, MEMORY: 32 * GIB, PODS: 1})

    found = explained(pod, *crowd, a_node("own", allocatable=room, requested=own))

    assert (found.key, said(found)) == (
        key, f"{title}. The other node lacks something else that the pod requests.",
    )  # fmt: skip


def test_the_limit_of_pods_of_a_node_that_reports_none_is_not_checked():
    room = {GPU: 8, CPU: 128_000, MEMORY: 1000 * GIB, PODS: UNKNOWN_LIMIT}
    found = explained(a_pod(requests={GPU: 4, PODS: 1}), a_node("a", allocatable=room, requested={PODS: 300}))

    assert (found.key, found.not_checked) == ("fits", ["pods per node, where a node reports no limit"])


@pytest.mark.parametrize(
    ("reason", "title", "step"),
    [
        ("node(s) exceed max volume count", "the limit of volumes per node", "Use fewer volumes per pod"),
        (
            "ebs.csi.aws.com CSI driver is not installed on the node", "no CSI driver of the volume",
            "Start the CSI driver",
        ),
    ],
)  # fmt: skip
def test_volumes_of_a_node_are_the_schedulers_to_count(reason, title, step):
    found = explained(a_pod(message=f"0/1 nodes are available: 1 {reason}."), a_node("a"))

    assert (found.key, found.title) == ("scheduler", f"The scheduler rejects 1 node: {title}")
    assert found.changes[0].text.startswith(step)


@pytest.mark.parametrize(
    ("scheduler", "reasons", "step"),
    [
        (
            "hami-scheduler", "2 node unregistered",
            "Check HAMi's device plugin on these nodes: it registers their GPUs.",
        ),
        ("own", "2 my rule", "Read the Events of the pod, and the log of the scheduler own."),
        ("default-scheduler", "2 my rule", "Compare the pod template with the nodes that the scheduler rejects."),
        (
            "default-scheduler", "2 node(s) didn't match PersistentVolume's node affinity",
            "Compare where the volume may be attached with the nodes: kubectl describe pv.",
        ),
    ],
)  # fmt: skip
def test_a_reason_that_is_not_compared_has_steps_of_its_own(scheduler, reasons, step):
    pod = a_pod(placement={"scheduler": scheduler}, message=f"0/2 nodes are available: {reasons}.")

    found = explained(pod, a_node("a"), a_node("b"))

    assert (found.key, found.changes[0].text) == ("scheduler", step)


def test_an_error_of_the_scheduler_is_quoted():
    """kubernetes/kubernetes#139016: no node is counted."""
    said = 'running Score plugins: plugin "DynamicResources" failed with: number of allocations 1 is smaller'
    found = explained(replace(a_pod(message=said), condition_reason="SchedulerError"), a_node("a"))

    assert (found.key, found.summary) == ("scheduler_error", said)


def test_gpus_are_free_but_the_memory_is_not():
    found = explained(a_pod(), a_node("a", requested={MEMORY: 1000 * GIB}))

    assert said(found) == (
        "No node with free GPUs has 32 GiB of memory free. 1 node has the GPUs free, with at most 24 GiB of memory "
        "free."
    )


def test_two_changes_are_needed():
    taint = {"key": "team", "value": "", "effect": "NoExecute"}
    found = explained(a_pod(), a_node("a", taints=[taint], is_cordoned=True))

    (change,) = found.changes
    assert change.text == ("Two changes are needed. Uncordon a. Tolerate the taint team:NoExecute in the pod template.")
    assert (change.actor, change.fits_later) == (Actor.ADMIN, 1)


def test_a_node_fits_and_the_scheduler_has_not_tried_again():
    found = explained(a_pod(message="0/1 nodes are available: 1 Insufficient nvidia.com/gpu."), a_node("a"))

    assert found.key == "scheduler"
    assert said(found) == (
        "The scheduler rejects 1 node: insufficient nvidia.com/gpu. 1 node fits by the checked requirements. The "
        "scheduler decides."
    )
    assert found.is_disputed


def test_the_scheduler_decides_where_it_names_what_is_not_checked():
    message = "0/2 nodes are available: 2 Insufficient rdma/hca. preemption: 0/2 nodes are available: 2 x."
    found = explained(a_pod(message=message), a_node("a"), a_node("b"))

    assert found.title == "The scheduler rejects 2 nodes: insufficient rdma/hca"
    assert found.differences == ["Insufficient rdma/hca: the scheduler counts 2 nodes, this check 0."]


def test_an_unknown_reason_is_named_and_not_guessed():
    found = explained(a_pod(message="0/1 nodes are available: 1 node(s) zu klein."), a_node("a", used=8))

    assert found.key == "no_room"
    assert found.differences[-1] == "The scheduler also names reasons unknown here: 1 node(s) zu klein."


@pytest.mark.parametrize("number", [3, 30])
def test_missing_nodes_are_named(number):
    message = f"0/{number} nodes are available: {number} Insufficient nvidia.com/gpu."

    found = explained(a_pod(message=message), a_node("a", used=8))

    assert f"The scheduler knows {number} nodes, and 1 are observed here." in found.differences


@pytest.mark.parametrize(
    ("gate", "title"),
    [
        ("kueue.x-k8s.io/admission", "Kueue holds this pod: kueue.x-k8s.io/admission"),
        ("example.com/wait", "A scheduling gate holds this pod: example.com/wait"),
    ],
)
def test_a_gate(gate, title):
    found = explained(a_pod(placement={"gates": [gate]}), a_node("a"))

    assert (found.key, found.title, found.decided_by) == ("gated", title, gate)


def test_a_gate_of_kueue_that_is_not_installed():
    pod = a_pod(placement={"gates": ["kueue.x-k8s.io/admission"]})

    found = explained(pod, a_node("a"), queue_unread="Kueue (not installed)")

    assert found.title == "kueue.x-k8s.io/admission holds it, and Kueue is not installed here"
    assert texts(found) == [
        ("Create the pod without the gate.", "pod owner", 1, 1),
        ("Install Kueue. It removes the gate of a workload that it admits.", "cluster admin", 0, 0),
    ]


def test_no_scheduler_of_that_name():
    pod = a_pod(placement={"scheduler": "volcan"}, created_at=NOON - timedelta(minutes=3))

    assert explained(pod, a_node("a")).title == "No scheduler named volcan reports on this pod"
    assert explained(pod, a_node("a"), has_events=True).key == "fits"


def test_a_new_pod_of_a_scheduler_that_was_never_seen_is_not_compared():
    pod = a_pod(gpus=4, placement={"scheduler": "volcano"})
    nodes = a_node("a", used=7), a_node("b", used=6)

    found = explained(pod, *nodes)

    assert found.title == "Waits for scheduler volcano, which has not reported yet"
    assert texts(found) == [("Check that the scheduler volcano runs, and read its log.", "cluster admin", 0, 0)]
    assert explained(pod, *nodes, is_scheduler_seen=True).key == "no_room"
    assert explained(pod, *nodes, has_events=True).key == "no_room"


def test_a_silent_scheduler():
    pod = a_pod(created_at=NOON - timedelta(minutes=3))

    assert explained(pod, a_node("a")).title == "The scheduler has not reported on this pod"


def test_a_silent_scheduler_may_wait_for_the_gang():
    """From 1.35 on, kube-scheduler reports no pod whose gang is incomplete (kubernetes/kubernetes#141900)."""
    pod = a_pod(placement={"pod_group": "pretrain"}, created_at=NOON - timedelta(minutes=3))

    found = explained(pod, a_node("a"))

    assert (found.key, found.title) == ("gang", "The scheduler has not reported: its gang may lack pods")
    assert found.decided_by == "pretrain"


@pytest.mark.parametrize(
    ("message", "title"),
    [
        (
            "waiting for minCount pods from a gang to appear in scheduling queue",
            "Waits for other pods of its gang",
        ),
        ('waiting for pods\'s pod group "pg1" to appear in scheduling queue', "PodGroup pg1 does not exist"),
        ('waiting for pods\'s workload "gang-wl" to appear in scheduling queue', "PodGroup gang-wl does not exist"),
        ('pod group "pg1" doesn\'t exist for a workload "w"', "PodGroup pg1 does not exist"),
    ],
)  # fmt: skip
def test_the_scheduler_names_its_own_gangs(message, title):
    found = explained(a_pod(message=message), a_node("a"))

    assert (found.key, found.title) == ("gang", title)


def test_an_unbound_volume_claim():
    pod = a_pod(
        placement={"volume_claims": ["datasets"]},
        message="0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
    )

    assert explained(pod, a_node("a")).title == "Waits for its volume claim: datasets"


@pytest.mark.parametrize(
    ("around", "title"),
    [
        ({"claims": []}, "ResourceClaim gpu does not exist"),
        ({}, "No node satisfies ResourceClaim gpu"),
        ({"claims": [ClaimFacts("gpu", False, "x")], "device_classes": []}, "DeviceClass x does not exist"),
        ({"claims": [ClaimFacts("gpu", False, "x")]}, "No node satisfies ResourceClaim gpu"),
    ],
)  # fmt: skip
def test_resource_claims(around, title):
    pod = a_pod(requests={}, claims=["gpu"], message="0/1 nodes are available: 1 cannot allocate all claims.")

    found = explained(pod, a_node("a"), **around)

    assert found.title == title


def test_what_is_not_checked_is_named():
    pod = a_pod(
        placement={
            "spread": [{"key": "zone"}], "pod_anti_affinity": [{"key": "host"}], "host_ports": ["80/TCP"],
            "volume_claims": ["x"], "scheduler": "volcano",
        },
        message="0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
    )  # fmt: skip

    assert explained(pod, a_node("a", used=8)).not_checked == [
        "topology spread constraints", "affinity to other pods", "host ports", "volumes",
        "the rules of the scheduler volcano",
    ]  # fmt: skip


@pytest.mark.parametrize("placement", [{"unread": ["affinity"]}, {"unread": ["tolerations"]}])
def test_requirements_that_could_not_be_read_are_not_guessed(placement):
    found = explained(a_pod(placement=placement, message="0/1 nodes are available: 1 x."), a_node("a"))

    assert (found.key, found.not_checked) == ("not_observed", ["parts of the pod that could not be read"])


def test_a_cluster_without_nodes():
    assert explained(a_pod(message="no nodes available to schedule pods")).title == "The cluster has no nodes"


def test_two_hundred_affinity_terms_and_markup_in_names():
    terms = [[{"key": HOSTILE, "operator": "In", "values": [f"{HOSTILE}{number}"]}] for number in range(200)]
    pod = a_pod(placement={"node_affinity": terms, "node_selector": {HOSTILE: HOSTILE}})

    found = explained(pod, *[a_node(f"{HOSTILE}{number}") for number in range(20)])

    assert found.key == "matches_no_node"
    assert len(found.title) < 300


def test_two_requests_that_no_node_has_are_both_reduced():
    pod = a_pod(requests={GPU: 16, CPU: 4_000, MEMORY: 2048 * GIB})
    more_memory = a_node("b", allocatable={GPU: 4, CPU: 128_000, MEMORY: 1024 * GIB})
    less_memory = a_node("a", allocatable={GPU: 8, CPU: 128_000, MEMORY: 512 * GIB})

    found = texts(explained(pod, less_memory, more_memory))

    two = "Two changes are needed. Request at most 8 GPUs per pod. Request at most 512 GiB of memory per pod."
    assert found == [(two, "pod owner", 0, 1)]


def test_two_changes_are_for_nodes_without_a_third_obstacle():
    pod = a_pod(gpus=16, placement={"node_selector": {"zone": "a"}})
    tainted = a_node("large", gpus=12, labels={"zone": "b"}, taints=[{"key": "t", "effect": "NoSchedule"}])

    found = texts(explained(pod, tainted, a_node("small", gpus=4, labels={"zone": "b"})))

    two = "Two changes are needed. Remove zone=a from the node selector. Request at most 4 GPUs per pod."
    assert found == [(two, "pod owner", 0, 1)]


def test_the_proposed_memory_and_cpu_are_never_rounded_up():
    amounts = {GPU: 8, CPU: 1_234_567, MEMORY: 1024 * GIB - 1}
    found = explained(a_pod(requests={GPU: 1, MEMORY: 1024 * GIB}), a_node("a", allocatable=amounts))

    assert texts(found)[0][0] == "Request at most 1023.99 GiB of memory per pod."
    assert amount_text(CPU, 1_234_567) == "1234.567 CPUs"
    assert amount_text(MEMORY, 300 * 2**20) == "300 MiB of memory"


def test_a_node_affinity_of_an_empty_term_matches_no_node():
    found = explained(a_pod(placement={"node_affinity": [[]]}), a_node("a"))

    assert found.title == "No GPU node matches the node affinity: an empty term"


def test_a_cause_that_another_scheduler_names_has_its_own_steps():
    said = "no nodes with enough resources were found: 1 node(s) didn't have enough resources: GPU memory."
    found = explained(a_pod(placement={"scheduler": "kai-scheduler"}, message=said), a_node("a"))

    assert (found.key, found.title) == ("scheduler", "KAI finds no node with enough GPU memory")
    assert "nvidia.com/gpu.memory" in found.changes[0].text


def test_a_missing_claim_in_a_cluster_without_classes_needs_a_driver_first():
    pod = a_pod(requests={CPU: 1}, claims=("gpu",))

    found = explained(pod, claims=[], device_classes=[])
    with_classes = explained(pod, claims=[], device_classes=["gpu.nvidia.com"])

    assert found.changes[0].text.startswith("Install a DRA driver first")
    assert with_classes.changes[0].text.startswith("Create the ResourceClaim")
