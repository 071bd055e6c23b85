import pytest

from gpu.operands import BY_APP, BY_LABEL, BY_LABEL_AND_NAME, BY_PART, TITLES, WAITS_FOR, operand_of


def test_driver_pods_are_told_by_their_component_however_they_are_named():
    labels = {"app": "nvidia-gpu-driver-ubuntu22.04-7c6d7f", "app.kubernetes.io/component": "nvidia-driver"}

    assert operand_of(labels) == "driver"


def test_the_others_are_told_by_their_app():
    assert operand_of({"app": "nvidia-operator-validator"}) == "operator-validator"


def test_a_tenants_pod_is_no_operand():
    assert operand_of({"app": "cuda-vectoradd"}) == ""
    assert operand_of({}) == ""


@pytest.mark.parametrize(
    ("labels", "operand"),
    [
        ({"app": "nvidia-cuda-validator"}, "cuda-test"),
        ({"app": "nvidia-device-plugin-validator"}, "plugin-test"),
        ({"app": "nfd-worker"}, "node-feature-discovery"),  # OpenShift's
        ({"k8s-app": "nvidia-driver-installer", "name": "nvidia-driver-installer"}, "driver-installer"),  # GKE's
        ({"app.kubernetes.io/name": "gke-managed-dcgm-exporter"}, "dcgm-exporter"),
        ({"app.kubernetes.io/name": "gpu-feature-discovery"}, "gpu-feature-discovery"),
    ],
)
def test_others_bring_operands_of_their_own(labels, operand):
    assert operand_of(labels) == operand


def test_of_node_feature_discovery_only_the_worker_runs_on_every_node():
    name = {"app.kubernetes.io/name": "node-feature-discovery"}

    assert operand_of({**name, "role": "worker"}) == "node-feature-discovery"
    assert operand_of({**name, "role": "master"}) == ""


def test_the_device_plugins_own_chart_gives_two_daemon_sets_the_same_labels():
    labels = {"app.kubernetes.io/name": "nvidia-device-plugin", "app.kubernetes.io/instance": "nvdp"}

    assert operand_of(labels, "nvdp-nvidia-device-plugin-x7jbk") == "device-plugin"
    assert operand_of(labels, "nvdp-nvidia-device-plugin-gpu-feature-discovery-w2x9d") == "gpu-feature-discovery"


def test_every_operand_has_a_title():
    by_name = {operand for *_, operand in BY_LABEL_AND_NAME}
    by_part = {operand for _, parts in BY_PART.values() for operand in parts.values()}

    assert {*BY_APP.values(), *BY_LABEL.values(), *by_name, *by_part} == set(TITLES)


@pytest.mark.parametrize(
    ("labels", "name", "operand"),
    [
        ({"dra-driver-nvidia-gpu-component": "kubelet-plugin"}, "dra-driver-nvidia-gpu-kubelet-plugin-x", "dra-driver"),
        ({"dra-driver-nvidia-gpu-component": "controller"}, "dra-driver-nvidia-gpu-controller-5d", ""),
        ({"name": "nvidia-cc-manager"}, "nvidia-cc-manager-x7", "cc-manager"),  # assets/state-cc-manager
        ({"name": "amdgpu-dp-ds"}, "amdgpu-device-plugin-daemonset-q2", "amd-device-plugin"),
        ({"name": "amdgpu-lr-ds"}, "amdgpu-labeller-daemonset-q2", "amd-node-labeller"),
        ({"daemonset-name": "gpus"}, "gpus-device-plugin-7xk2l", "amd-device-plugin"),
        ({"daemonset-name": "gpus"}, "gpus-node-labeller-9z", "amd-node-labeller"),
        ({"daemonset-name": "gpus-metrics-exporter"}, "gpus-metrics-exporter-4d", "amd-metrics-exporter"),
        ({"app": "r-amdgpu-metrics-exporter"}, "r-amdgpu-metrics-exporter-4d", "amd-metrics-exporter"),
        ({"app.kubernetes.io/name": "metric-exporter-ds"}, "metric-exporter-ds-9t", "gaudi-metric-exporter"),
        ({"app.kubernetes.io/name": "habana-ai"}, "habana-ai-metric-exporter-ds-9t", "gaudi-metric-exporter"),
        ({"daemonset-name": "gpus"}, "gpus-device-config-manager-9z", "amd-config-manager"),
        # network-operator, manifests/state-ofed-driver
        ({"app": "mofed-ubuntu24.04-84cb6b9485", "nvidia.com/ofed-driver": ""}, "mofed-x-ds-mpj9b", "network-driver"),
        ({"daemonset-name": "mine"}, "mine-x", ""),
        ({"app": "intel-gpu-plugin"}, "intel-gpu-plugin-gktbr", "intel-gpu-plugin"),
        ({}, "intel-gpu-resource-driver-kubelet-plugin-mn8k6", "intel-dra-driver"),
        ({}, "habana-ai-device-plugin-ds-4kq", "gaudi-device-plugin"),
        ({"name": "habanalabs-device-plugin-ds"}, "habanalabs-device-plugin-daemonset-x", "gaudi-device-plugin"),
        ({"name": "neuron-device-plugin-ds"}, "neuron-device-plugin-daemonset-d4ksr", "neuron-device-plugin"),
    ],
)
def test_every_vendors_are_operands(labels, name, operand):
    assert operand_of(labels, name) == operand


def test_nothing_waits_for_itself_or_for_what_does_not_exist():
    for operand, awaited in WAITS_FOR.items():
        assert operand not in awaited
        assert {operand, *awaited} <= set(TITLES)


@pytest.mark.parametrize(
    ("component", "operand"), [("worker", "kernel-module"), ("BuildImage", "kernel-module"), ("kmm", "")]
)
def test_a_pod_that_loads_or_builds_a_kernel_module_is_one_and_its_controller_is_none(component, operand):
    assert operand_of({"app.kubernetes.io/name": "kmm", "app.kubernetes.io/component": component}) == operand
