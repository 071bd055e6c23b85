import pytest

from health.stack.causes import Weight, cause_of
from tests.health.stack.signs import GATE, an_event, signs

PRESENT = {"nvidia.com/gpu.present": "true"}


@pytest.mark.parametrize(
    ("labels", "key", "weight"),
    [
        ({GATE: "true"}, "missing", Weight.WRONG),
        ({GATE: "paused-for-driver-upgrade"}, "paused", Weight.WAITING),
        ({GATE: "custom_paused-for-driver-upgrade"}, "paused", Weight.WAITING),
        ({GATE: "paused-for-mig-change"}, "paused", Weight.WAITING),
        ({GATE: "false"}, "switched_off", Weight.CHOSEN),
        ({"nvidia.com/gpu.deploy.operands": "false"}, "opted_out", Weight.CHOSEN),
        ({}, "not_labelled", Weight.WRONG),
    ],
)
def test_why_there_is_no_pod(labels, key, weight):
    cause = cause_of(signs(labels=PRESENT | labels))

    assert (cause.key, cause.weight) == (key, weight)


@pytest.mark.parametrize(("operand", "plugin"), [("device-plugin", True), ("gpu-feature-discovery", False)])
def test_beside_a_dra_driver_nobody_is_told_to_bring_the_device_plugin_back(operand, plugin):
    """NVIDIA's guide to its DRA driver has the device plugin switched off: each would give the same GPUs away."""
    gate = f"nvidia.com/gpu.deploy.{operand}"
    off = {"labels": PRESENT | {gate: "false"}, "selector": {gate: "true"}}

    cause = cause_of(signs(operand, has_dra=True, **off))

    assert cause.key == "switched_off"
    assert ("kubectl" not in cause.action) is plugin
    assert "kubectl label node gpu-1" in cause_of(signs(operand, **off)).action


def test_an_operand_that_nobody_wants_here_has_no_cause():
    other = {"nvidia.com/gpu.deploy.vgpu-manager": "true"}

    assert cause_of(signs("vgpu-manager", labels=PRESENT | {GATE: "true"}, selector=other)) is None


def test_what_was_paused_says_for_which_work():
    for_mig = cause_of(signs(labels={GATE: "paused-for-mig-change"}))

    assert for_mig.title == "Paused while the MIG layout changes"
    assert f"{GATE}=paused-for-mig-change" in for_mig.summary
    assert f"kubectl label node gpu-1 {GATE}=true --overwrite" in for_mig.action


def test_a_driver_on_the_host_is_observed_and_never_managed():
    gate = "nvidia.com/gpu.deploy.driver"
    cause = cause_of(signs("driver", labels={gate: "pre-installed"}, selector={gate: "true"}))

    assert cause.key == "pre_installed"
    assert "observes this driver and never changes it" in cause.sentence


def test_a_taint_that_is_not_tolerated_is_named():
    taint = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
    cause = cause_of(signs(taints=[taint], tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]))

    assert cause.key == "tainted"
    assert "dedicated=ml:NoSchedule" in cause.sentence


def test_a_daemon_set_that_may_not_make_pods_says_who_refuses():
    refusal = 'Error creating: pods "x" is forbidden: exceeded quota: gpu-operator-quota, requested: pods=1'
    cause = cause_of(signs(daemon_set_events=[an_event(refusal, "FailedCreate")]))

    assert (cause.key, cause.quote) == ("cannot_be_made", refusal)


def test_a_pod_without_a_node_is_named():
    cause = cause_of(signs(unscheduled="Unschedulable: 0/3 nodes are available: 1 Insufficient cpu."))

    assert (cause.key, cause.quote) == ("unscheduled", "Unschedulable: 0/3 nodes are available: 1 Insufficient cpu.")


def test_a_pod_that_cannot_be_seen_is_not_missing():
    cause = cause_of(signs(sees_pods=False))

    assert (cause.key, cause.weight) == ("unseen", Weight.UNKNOWN)


def test_a_node_that_no_driver_selects_is_named_with_its_kernel():
    labels = {"nvidia.com/gpu.deploy.driver": "true"}
    cause = cause_of(signs("driver", labels=labels, selector={}, has_daemon_set=False, others_have_one=True))

    assert cause.key == "no_driver_selects"
    assert "kernel 6.8.0-60-generic" in cause.sentence


def test_a_cluster_whose_operator_runs_no_driver_has_it_on_the_host():
    labels = {"nvidia.com/gpu.deploy.driver": "true"}
    cause = cause_of(signs("driver", labels=labels, selector={}, has_daemon_set=False, runs_version="580.95.05"))

    assert (cause.key, cause.weight) == ("no_driver_managed", Weight.CHOSEN)


def an_expression(key: str, operator: str, *values: str) -> dict:
    return {"key": key, "operator": operator, "values": list(values)}


OF_GKE = [[an_expression("cloud.google.com/gke-accelerator", "Exists")]]


def test_no_pod_is_missing_where_the_affinity_takes_no_node():
    assert cause_of(signs(selector={}, affinity=OF_GKE)) is None


def test_a_pod_is_missing_where_the_affinity_takes_the_node():
    labels = {"cloud.google.com/gke-accelerator": "nvidia-l4"}

    assert cause_of(signs(selector={}, affinity=OF_GKE, labels=labels)).key == "missing"


def test_a_taint_is_no_cause_where_the_affinity_takes_no_node():
    taint = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}

    assert cause_of(signs(selector={}, affinity=OF_GKE, taints=[taint])) is None


def test_a_node_that_the_operator_takes_for_one_without_gpus_says_so():
    cause = cause_of(signs(labels={"nvidia.com/gpu.present": "false"}))  # gpu-operator #1551

    assert (cause.key, cause.weight) == ("taken_for_none", Weight.WRONG)


def test_a_node_without_gpus_misses_nothing():
    assert cause_of(signs(labels={"nvidia.com/gpu.present": "false"}, is_gpu_node=False)) is None


@pytest.mark.parametrize(
    ("workload", "words"), [("vm-passthrough", "vfio-pci"), ("vm-vgpu", "vGPU manager"), ("vm-other", "vfio-pci")]
)
def test_a_node_for_virtual_machines_wants_no_driver(workload, words):
    labels = PRESENT | {GATE: "true", "nvidia.com/gpu.workload.config": workload}
    cause = cause_of(signs("driver", has_daemon_set=False, others_have_one=True, labels=labels))

    assert cause.weight is Weight.CHOSEN
    assert words in cause.sentence


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        # gpu-operator #48, OpenShift
        ("is forbidden: unable to validate against any security context constraint: [provider restricted: …]", "SCC"),
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest": host namespaces', "enforce=privileged"),
        ('is forbidden: PodSecurityPolicy: unable to admit pod: [spec.volumes[0]: Invalid value: "hostPath"]',
         "enforce=privileged"),
        ("insufficient quota to match these scopes: [{PriorityClass In [system-node-critical]}]", "ResourceQuota"),
        ('pods "x" is forbidden: pod rejected: RuntimeClass "nvidia" not found', "kubectl get runtimeclass"),
        ('admission webhook "validate.kyverno.svc-fail" denied the request', "webhook"),
        ("something else", "Find the policy"),
    ],
)  # fmt: skip
def test_who_refuses_a_pod_is_told_with_what_to_do(refusal, words):
    cause = cause_of(signs(daemon_set_events=[an_event(f"Error creating: {refusal}", "FailedCreate")]))

    assert cause.key == "cannot_be_made"
    assert words in cause.action
