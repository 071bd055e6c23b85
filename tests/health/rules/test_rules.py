import re
from dataclasses import replace
from typing import Any

import pytest

from fleet.models.kinds import MIRRORED
from health.rules import RULES
from health.rules.allocatable_below_expected import AllocatableBelowExpected
from health.rules.base import (
    NODE,
    ClusterFacts,
    FailingPod,
    IdleAllocation,
    NodeCondition,
    NodeFacts,
    NoOffer,
    Severity,
    StuckDriver,
    WorkloadHere,
)
from health.rules.claims_waiting import ClaimsWaiting
from health.rules.compute_domain_down import ComputeDomainDown
from health.rules.driver_object_stuck import DriverObjectStuck
from health.rules.gpus_never_offered import GpusNeverOffered
from health.rules.inference_on_time_slices import InferenceOnTimeSlices
from health.rules.observer_behind import ObserverBehind
from health.rules.operator_down import OperatorDown
from health.rules.pods_failing import PodsFailing
from health.rules.pods_not_starting import PodsNotStarting
from tests.make import NOON
from tests.reports import causes, steps, told
from wording.reports import EvidenceItem

GPU = "nvidia.com/gpu"
NODE_RULES = [rule for rule in RULES if rule.subject == NODE]
WELL = NodeFacts("gpu-001", allocatable={GPU: 8}, capacity={GPU: 8}, expected={GPU: 8}, requested={GPU: 8})


def test_a_node_with_all_its_gpus_is_well():
    assert [rule.evaluate(WELL) for rule in NODE_RULES] == [None] * len(NODE_RULES)


def test_a_sick_gpu_lowers_allocatable_while_capacity_stays():
    wrong = AllocatableBelowExpected().evaluate(replace(WELL, allocatable={GPU: 7}))

    assert wrong.severity == Severity.WARNING
    assert (wrong.title, wrong.summary) == ("1 GPU missing on gpu-001", "The node had more allocatable GPUs before.")
    assert "unhealthy" in causes(wrong)
    assert wrong.facts == {GPU: {"allocatable": 7, "capacity": 8, "expected": 8}}


def test_a_gpu_lost_before_boot_is_missed_although_capacity_and_allocatable_agree():
    """Z24."""
    wrong = AllocatableBelowExpected().evaluate(replace(WELL, allocatable={GPU: 7}, capacity={GPU: 7}))

    assert "probably booted without the GPU. Its capacity fell too." in causes(wrong)
    booted = AllocatableBelowExpected().evaluate(replace(WELL, allocatable={GPU: 7}, capacity={GPU: 7}, booted_at=NOON))
    assert "The node booted at 2026-11-21 12:00 UTC" in causes(booted)
    assert booted.fingerprint == wrong.fingerprint  # the same trouble when the boot is long ago


@pytest.mark.parametrize(
    ("left", "cause"),
    [(7, "The device plugin reports the GPU as unhealthy."), (0, "The device plugin reports the GPUs as unhealthy.")],
)
def test_all_that_is_missing_beside_its_capacity_is_called_unhealthy(left, cause):
    assert causes(AllocatableBelowExpected().evaluate(replace(WELL, allocatable={GPU: left}))) == cause


def test_a_gpu_that_a_dra_driver_publishes_no_more_need_not_have_been_away_at_a_boot():
    """It takes an unhealthy one out of its ResourceSlice while it runs: there is no capacity beside that."""
    fewer = {"gpu.nvidia.com": 7}
    node = replace(WELL, expected={"gpu.nvidia.com": 8}, capacity=fewer, allocatable=fewer)

    wrong = AllocatableBelowExpected().evaluate(node)
    booted = AllocatableBelowExpected().evaluate(replace(node, booted_at=NOON))

    assert causes(wrong) == "The DRA driver removed the GPU as unhealthy, or started without it."
    assert "The node booted at 2026-11-21 12:00 UTC" in causes(booted)
    assert booted.fingerprint == wrong.fingerprint


def test_gpus_of_an_incomplete_pool_are_not_called_unhealthy():
    of_dra = {"gpu.nvidia.com": 8}
    pools = (EvidenceItem("Pool gpu-001 of gpu.nvidia.com", "1 of 2 ResourceSlices"),)
    node = replace(WELL, expected=of_dra, capacity=of_dra, allocatable={"gpu.nvidia.com": 0}, incomplete_pools=pools)

    wrong = AllocatableBelowExpected().evaluate(node)

    assert "reports another number of ResourceSlices than exist" in causes(wrong)
    assert "Pool gpu-001 of gpu.nvidia.com: 1 of 2 ResourceSlices" in told(wrong)


@pytest.mark.parametrize("capacity", [{}, {GPU: 0}])
def test_a_node_that_offers_none_is_critical(capacity):
    """Z24: capacity goes when the plugin stops, or is 0 with the plugin running."""
    wrong = AllocatableBelowExpected().evaluate(replace(WELL, allocatable=capacity, capacity=capacity))

    assert wrong.severity == Severity.CRITICAL
    assert "device plugin offers no GPU" in causes(wrong)


@pytest.mark.parametrize(
    ("resource", "vendor", "offerer", "tool"),
    [
        ("amd.com/gpu", "amd", "device plugin", "amd-smi"),
        ("habana.ai/gaudi", "habana", "device plugin", "hl-smi"),
        ("gpu.amd.com", "amd", "DRA driver", "amd-smi"),
        ("gpu.nvidia.com", "nvidia", "DRA driver", "nvidia-smi"),
    ],
)
def test_whoever_offers_them_and_whosever_they_are_is_who_is_looked_at(resource, vendor, offerer, tool):
    well = replace(WELL, vendor=vendor, expected={resource: 8}, capacity={resource: 8}, allocatable={resource: 7})
    gone, fewer = replace(well, capacity={}, allocatable={}), replace(well, capacity={resource: 7})
    found = [AllocatableBelowExpected().evaluate(each) for each in (well, gone, fewer)]
    sick, gone, fewer = (f"{causes(wrong)} {steps(wrong)}" for wrong in found)

    assert sick.startswith(f"The {offerer} reports the GPU as unhealthy")
    assert gone.startswith(f"The {offerer} offers no GPU")
    assert f"in lspci and {tool} on the node" in fewer
    assert ("Xid" in sick) == (vendor == "nvidia")


def test_shares_are_told_in_gpus():
    shared = replace(WELL, layout="gpu=whole/time-slicing*4", expected={GPU: 32}, capacity={GPU: 32})

    wrong = AllocatableBelowExpected().evaluate(replace(shared, allocatable={GPU: 28}))

    assert wrong.title == "1 GPU (4 of its time-slices) missing on gpu-001"


def test_a_node_whose_driver_is_being_replaced_misses_nothing():
    """An upgrade pages nobody for what it takes away meanwhile (R73.6)."""
    assert AllocatableBelowExpected().evaluate(replace(WELL, allocatable={}, is_changing=True)) is None


def test_inference_on_time_slices_is_found_where_somebody_is_on_them():
    node = replace(WELL, sharing="time-slicing", sharing_replicas=4, workload_classes=frozenset({"inference"}))

    assert "Shares of each GPU: 4" in told(InferenceOnTimeSlices().evaluate(node))
    assert InferenceOnTimeSlices().evaluate(replace(node, requested={})) is None
    assert InferenceOnTimeSlices().evaluate(replace(node, sharing="mps")) is None
    assert InferenceOnTimeSlices().evaluate(replace(node, workload_classes=frozenset({"training"}))) is None


def test_a_lag_is_about_quarterdeck_itself():
    behind = ClusterFacts("prod", lag_ms=7250, behind_since=NOON)

    wrong = ObserverBehind().evaluate(behind)
    assert wrong.title == "Quarterdeck lags behind cluster prod"
    assert "Behind since: 2026-11-21 12:00:00 UTC" in told(wrong)
    assert ObserverBehind().evaluate(replace(behind, behind_since=None)) is None


def test_an_operator_that_does_not_run_is_a_warning_in_its_own_words():
    down = ClusterFacts("prod", operator_trouble="The GPU operator does not run (0 of 1 pods ready).")

    wrong = OperatorDown().evaluate(down)

    assert (wrong.severity, wrong.title) == (Severity.WARNING, "GPU operator down in prod")
    assert down.operator_trouble in told(wrong)
    assert OperatorDown().evaluate(replace(down, operator_trouble="")) is None


def test_every_rule_has_a_key_of_its_own():
    keys = [rule.key for rule in RULES]

    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.key)
def test_every_rule_reads_kinds_that_are_watched(rule):
    assert set(rule.reads) <= set(MIRRORED)


def test_every_sentence_holds_for_one_and_for_several():
    for number, one in ((1, True), (2, False)):
        pods = tuple(FailingPod(f"team-a/infer-{n}", "CrashLoopBackOff", number) for n in range(number))
        lacks = AllocatableBelowExpected().evaluate(replace(WELL, allocatable={GPU: 8 - number}))
        fails = PodsFailing().evaluate(replace(WELL, failing_pods=pods))

        assert lacks.title == f"{number} GPU{'' if one else 's'} missing on gpu-001"
        assert fails.title == f"{number} pod{' fails' if one else 's fail'} on gpu-001"


def wrong_by(number: int) -> dict[str, tuple[NodeFacts, ...]]:
    """By rule, nodes on which so many are wrong: one that is not here fails the test below."""
    pods = tuple(FailingPod(f"team-a/infer-{each}", "CrashLoopBackOff", number) for each in range(number))
    shared = replace(WELL, sharing="time-slicing", workload_classes=frozenset({"inference"}), requested={GPU: number})
    left = {GPU: 8 - number}
    lost = replace(WELL, allocatable=left)
    return {
        "allocatable-below-expected": (
            *(lost, replace(lost, capacity=left), replace(lost, capacity={})),
            replace(lost, capacity={}, vendor="amd"),
        ),
        "idle-gpus": (replace(WELL, idle_allocations=(IdleAllocation("team-a/notebook", 24, number=number),)),),
        "inference-on-time-slices": (replace(shared, sharing_replicas=number),),
        "mig-change-stuck": (replace(lost, mig_state="pending", mig_overdue_since=NOON),),
        "pods-failing": (replace(WELL, failing_pods=pods),),
        "pods-not-starting": (replace(WELL, starting_pods=pods),),
        "workload-fails-here": (
            replace(WELL, workloads=(WorkloadHere("team-a/infer", number, 0, 0, 3, 2),)),
            replace(WELL, workloads=(WorkloadHere("team-a/infer", number, 3, 0, 0, 0, gpu=3),)),
        ),
    }


@pytest.mark.parametrize("rule", NODE_RULES, ids=lambda rule: rule.key)
def test_no_rule_says_its_probable_cause_twice(rule):
    not_ready = replace(WELL, is_ready=False, not_ready_reason="container runtime is down")
    racing = replace(WELL, conditions=(NodeCondition("FrequentContainerdRestart", reporter="node-problem-detector"),))
    for node in (*wrong_by(2).get(rule.key, ()), not_ready, racing):
        if (wrong := rule.evaluate(node)) is None:
            continue
        assert not causes(wrong) or causes(wrong).endswith(".")
        assert not causes(wrong) or causes(wrong) not in f"{told(wrong)} {steps(wrong)}"


# Nothing in their sentences is counted.
COUNT_NOTHING = {
    "node-not-ready", "node-conditions", "exporter-silent", "upgrade-failed", "upgrade-stuck", "paused-operands",
    "cordon-removed", "versions-disagree", "operand-down", "node-flapping", "gpus-never-offered", "compute-domain-down",
    "xid-of-unknown-gpu", "cordon-stale", "device-unhealthy", "inference-on-time-slices", "workload-fails-here",
    "workload-fails-on-some", "cpu-pods-on-gpu-node", "labels-contradict",
}  # fmt: skip


@pytest.mark.parametrize(
    "rule", [rule for rule in NODE_RULES if rule.key not in COUNT_NOTHING], ids=lambda rule: rule.key
)
def test_no_rule_says_one_of_many_or_many_of_one(rule):
    nouns = "GPU|minute|pod|restart|share|slice"
    for node in wrong_by(1)[rule.key]:
        wrong = rule.evaluate(node)
        said = f"{told(wrong)} {causes(wrong)} {steps(wrong)}"
        assert not re.search(rf"\b1 (?:{nouns})s\b|\b1 pod (?:fail|take)\b|some of them|(?:for|lists) them", said), said
        assert re.search(rf"\b1 (?:{nouns})\b", said), said
    for node in wrong_by(2)[rule.key]:
        wrong = rule.evaluate(node)
        said = f"{told(wrong)} {causes(wrong)} {steps(wrong)}"
        assert not re.search(rf"\b2 (?:{nouns})\b|\b2 pods (?:fails|takes)\b|(?:for|lists) it\b", said), said
        assert re.search(rf"\b2 (?:{nouns})s\b", said), said


@pytest.mark.parametrize(
    ("status", "action"),
    [
        ("UnexpectedAdmissionError", "Check the device plugin"),
        ("OutOfnvidia.com/gpu", "Check the device plugin"),
        ("OutOfcpu", "had no room left"),
        ("Evicted", "`kubectl describe node`"),
        ("Terminated", "node was shut down"),
        ("Error", "Nothing creates it again"),
    ],
)
def test_of_a_pod_that_failed_for_good_it_says_what_helps(status, action):
    pods = (FailingPod("team-a/bare", status, 0, is_over=True),)

    wrong = PodsFailing().evaluate(replace(WELL, failing_pods=pods))

    assert wrong.title == "1 pod failed on gpu-001"
    assert wrong.summary.startswith("team-a/bare")
    assert action in steps(wrong)


def test_where_some_still_crash_the_others_do_not_hide_it():
    pods = (FailingPod("a/over", "Evicted", 0, is_over=True), FailingPod("b/crashes", "CrashLoopBackOff", 2))

    wrong = PodsFailing().evaluate(replace(WELL, failing_pods=pods))

    assert wrong.title == "2 pods fail on gpu-001"
    assert wrong.summary == "b/crashes (CrashLoopBackOff); a/over (Evicted)"
    assert "kubectl logs POD --previous" in steps(wrong)


def test_why_a_pod_fails_is_the_probable_cause_and_what_helps_the_action():
    known = FailingPod(
        "b/cdi",
        "CrashLoopBackOff",
        2,
        cause="Its CDI device is unknown.",
        steps=("Take nvidia-cdi out.",),
        message="runc: x",
    )

    alone = PodsFailing().evaluate(replace(WELL, failing_pods=(known,)))
    beside = PodsFailing().evaluate(replace(WELL, failing_pods=(known, FailingPod("a/b", "Error", 1))))

    assert (alone.causes, alone.steps) == (("Its CDI device is unknown.",), ("Take nvidia-cdi out.",))
    assert told(alone).endswith("Pod b/cdi: CrashLoopBackOff: runc: x\nRestarts of b/cdi: 2")
    assert beside.steps == ("Pod b/cdi: Take nvidia-cdi out.",)


def test_pods_that_do_not_start_are_told_with_the_line_of_the_kubelet():
    pod = FailingPod("a/train", "ContainerCreating", 0, cause="It waits.", steps=("Look.",), message="not registered")

    wrong = PodsNotStarting().evaluate(replace(WELL, starting_pods=(pod,)))

    assert wrong.title == "1 pod does not become ready on gpu-001"
    assert (wrong.causes, wrong.steps) == (("It waits.",), ("Look.",))
    assert "Pod a/train: ContainerCreating: not registered" in told(wrong)


def test_a_node_that_never_offered_its_gpus_is_found_unless_its_driver_is_on_its_way():
    offer = NoOffer("AMD DRA driver", True, "Its slice is rejected.", ("Take 1.0.1.",), "E: x")
    node = replace(WELL, allocatable={}, capacity={}, expected={}, never_offered=offer)

    wrong = GpusNeverOffered().evaluate(node)
    silent = GpusNeverOffered().evaluate(replace(node, never_offered=NoOffer()))

    assert "AMD DRA driver: Ready\nLog line: E: x" in told(wrong)
    assert (wrong.causes, wrong.steps) == (("Its slice is rejected.",), ("Take 1.0.1.",))
    assert silent.title == "gpu-001 never offered its GPUs"
    assert GpusNeverOffered().evaluate(replace(node, is_changing=True)) is None
    assert GpusNeverOffered().evaluate(replace(node, is_ready=False)) is None


def test_the_daemon_of_a_compute_domain_is_named_with_its_cause():
    daemon = FailingPod(
        "dra/imex-x", "Running", 4, cause="IMEX is in use.", steps=("Disable it.",), message="NV_ERR_IN_USE"
    )

    wrong = ComputeDomainDown().evaluate(replace(WELL, domain_daemon=daemon))

    assert "Pod dra/imex-x: Running: NV_ERR_IN_USE" in told(wrong)
    assert (wrong.causes, wrong.steps) == (("IMEX is in use.",), ("Disable it.",))
    assert ComputeDomainDown().evaluate(replace(WELL, domain_daemon=daemon, is_changing=True)) is None


def test_claims_that_nobody_serves_are_told_of_the_cluster():
    pods = tuple(FailingPod(f"a/vllm-{n}", "Pending", 0, cause="No driver.", steps=("Look.",)) for n in range(3))

    wrong = ClaimsWaiting().evaluate(ClusterFacts("prod", claims_waiting=pods))

    assert wrong.title == "ResourceClaims wait for a driver in prod"
    assert "Pod a/vllm-2: Pending" in told(wrong)
    assert wrong.fingerprint == ClaimsWaiting().evaluate(ClusterFacts("prod", claims_waiting=pods[:1])).fingerprint
    assert ClaimsWaiting().evaluate(ClusterFacts("prod")) is None


@pytest.mark.parametrize(
    ("older", "says"), [(0, "Driver pods probably use an older template."), (2, "Driver pods use an older template.")]
)
def test_a_driver_object_that_stays_not_ready_beside_ready_pods_is_found(older, says):
    wrong = DriverObjectStuck().evaluate(ClusterFacts("prod", stuck_drivers=(StuckDriver("h100", 2, older),)))

    assert wrong.title == "NVIDIADriver h100 stays notReady"
    assert f"Of an older template: {older}" in told(wrong)
    assert says in causes(wrong)


def test_pods_beyond_the_first_two_are_counted():
    pods = tuple(FailingPod(f"team-a/infer-{n}", "ImagePullBackOff", 0) for n in range(4))

    wrong = PodsFailing().evaluate(replace(WELL, failing_pods=pods))

    assert wrong.title == "4 pods fail on gpu-001"
    assert "the registry" in steps(wrong)


COUNTING_ON: dict[str, tuple[Any, Any]] = {
    "inference-on-time-slices": (
        replace(WELL, sharing="time-slicing", workload_classes=frozenset({"inference"}), requested={GPU: 1}),
        replace(WELL, sharing="time-slicing", workload_classes=frozenset({"inference"}), requested={GPU: 5}),
    ),
    "pods-failing": (
        replace(WELL, failing_pods=(FailingPod("a/b", "CrashLoopBackOff", 3),)),
        replace(WELL, failing_pods=(FailingPod("a/b", "CrashLoopBackOff", 300),)),
    ),
    "observer-behind": (
        ClusterFacts("prod", lag_ms=2100, behind_since=NOON),
        ClusterFacts("prod", lag_ms=9100, behind_since=NOON),
    ),
    "cluster-not-seen": (
        ClusterFacts("prod", unseen_state="stale", unseen_reason="Not seen since 12:00. Refused."),
        ClusterFacts("prod", unseen_state="stale", unseen_reason="Not seen since 12:00. Timed out after 5.1 s."),
    ),
}


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.key in COUNTING_ON], ids=lambda rule: rule.key)
def test_a_number_that_counts_on_is_the_same_cause(rule):
    one, other = (rule.evaluate(facts) for facts in COUNTING_ON[rule.key])

    assert one.fingerprint == other.fingerprint


def test_another_gpu_that_goes_is_another_cause():
    lost = [AllocatableBelowExpected().evaluate(replace(WELL, allocatable={GPU: left})) for left in (7, 6)]

    assert lost[0].fingerprint != lost[1].fingerprint
