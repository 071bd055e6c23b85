from collections import Counter

import pytest

from fleet.drivers.cluster_drivers import read_drivers
from fleet.models import Node
from gpu.compatibility import Support
from gpu.labels import DEPLOY_DRIVER, PRE_INSTALLED
from health.stack.combinations import AKS, OPENSHIFT, compare, compare_combinations, compare_node, surroundings
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db
TODAY = NOON.date()
AS_LISTED = {
    "os_image": "Ubuntu 24.04.2 LTS",
    "container_runtime": "containerd://2.3.1",
    "driver_version": "595.91.07",
    "gpu_vendor": "nvidia",
}


@pytest.fixture
def cluster():
    cluster = make.a_cluster(server_version="v1.36.4")
    make.a_driver_object(cluster, "cluster-policy", kind="ClusterPolicy", operator_version="v26.7.0", version="")
    return cluster


def compared(cluster):
    around = surroundings(read_drivers(cluster))
    make.counted()
    return compare(cluster, around, user=make.a_user(role="viewer"), today=TODAY)


def nodes_of(found, subject):
    return [line.nodes for line in found.lines if line.verdict.subject.startswith(subject)]


def test_equal_nodes_are_one_combination_and_equal_answers_one_line(cluster):
    for _ in range(3):
        make.a_node(cluster, **AS_LISTED)
    make.a_node(cluster, **AS_LISTED | {"driver_version": "580.95.05"})

    found = compared(cluster)

    assert (found.nodes, found.groups) == (4, 2)
    assert nodes_of(found, "Operator 26.7.0, Ubuntu 24.04, Kubernetes 1.36") == [4]
    assert nodes_of(found, "Operator 26.7.0, driver 580.95.05") == [1]
    assert found.counts[Support.UNKNOWN] == 1


def test_a_driver_that_went_silent_is_not_known(cluster):
    make.a_node(cluster, **AS_LISTED, driver_unknown_since=NOON)

    assert nodes_of(compared(cluster), "Driver") == [1]


def test_gpus_of_other_vendors_are_not_judged_by_this_matrix(cluster):
    make.a_node(cluster, **AS_LISTED | {"gpu_vendor": "amd", "driver_version": "6.4.1"})

    found = compared(cluster)

    assert found.nodes == 0
    assert {line.verdict.rule for line in found.lines} == {"operator"}


def test_a_node_without_gpus_is_not_judged(cluster):
    node = make.a_node(cluster, is_gpu_node=False, gpus=0)

    assert compare_node(node, surroundings(read_drivers(cluster)), today=TODAY) == []


def test_a_driver_that_compiles_on_the_node_is_judged_by_its_kernel_too(cluster):
    jammy = AS_LISTED | {"os_image": "Ubuntu 22.04.5 LTS"}
    for kernel in ("6.8.0-64-generic", "6.8.0-64-generic", "6.11.0-1011-aws"):
        make.a_node(cluster, **jammy, kernel=kernel)

    found = compared(cluster)

    said = {line.verdict.subject: (line.verdict.answer, line.nodes) for line in found.lines}
    assert said["Driver 595.91.07, kernel 6.8.0-64-generic"] == (Support.SUPPORTED, 2)
    assert said["Driver 595.91.07, kernel 6.11.0-1011-aws"] == (Support.UNSUPPORTED, 1)


def test_a_precompiled_driver_is_judged_by_its_kernel(cluster):
    cluster.driver_objects.update(use_precompiled=True)
    make.a_node(cluster, **AS_LISTED, kernel="6.8.0-64-generic")
    make.a_node(cluster, **AS_LISTED, kernel="6.14.0-29-generic")

    found = compared(cluster)

    assert nodes_of(found, "Precompiled R595, kernel 6.14.0-29-generic") == [1]
    assert found.worst is Support.UNSUPPORTED


def test_what_a_pre_installed_driver_lacks_is_told_from_the_node_s_label(cluster):
    make.an_operand(cluster, "mig-manager", image="nvcr.io/nvidia/cloud-native/k8s-mig-manager:v0.15.0")
    rhel = AS_LISTED | {"os_image": "Red Hat Enterprise Linux 8.10 (Ootpa)"}
    make.a_node(cluster, **rhel, labels={"nvidia.com/gpu.deploy.driver": "pre-installed"})
    make.a_node(cluster, **rhel, labels={"nvidia.com/gpu.deploy.driver": "true"})

    assert nodes_of(compared(cluster), "MIG manager on RHEL 8") == [1]


def test_switches_of_the_policy_decide_what_is_known_to_fail(cluster):
    make.a_node(cluster, **AS_LISTED | {"container_runtime": "cri-o://1.33.4"})
    cluster.driver_objects.update(uses_nri=False)
    assert not nodes_of(compared(cluster), "NRI")

    cluster.driver_objects.update(uses_nri=True)

    assert compared(cluster).worst is Support.KNOWN_BAD


def test_an_image_that_is_not_the_release_s_is_named_wherever_it_is_set(cluster):
    make.an_operand(cluster, "device-plugin", image="nvcr.io/nvidia/k8s-device-plugin:v0.17.1")
    make.an_operand(cluster, "gpu-feature-discovery", image="nvcr.io/nvidia/k8s-device-plugin:v0.20.0")
    cluster.driver_objects.update(operand_versions={"container-toolkit": "v1.18.0"})
    make.a_node(cluster, **AS_LISTED)

    (line,) = [line for line in compared(cluster).lines if line.verdict.rule == "operands"]

    assert "container-toolkit v1.18.0 (ships 1.20.0), device-plugin v0.17.1 (ships 0.20.0)" in line.verdict.sentence
    assert "gpu-feature-discovery" not in line.verdict.sentence


def test_counts_only_what_one_may_see(cluster):
    pool = make.a_pool(cluster)
    make.a_node(cluster, pool=pool, **AS_LISTED)
    make.a_node(cluster, **AS_LISTED)
    make.counted()

    _, found = compare_combinations(cluster, user=make.a_user(role="viewer", on=pool), today=TODAY)

    assert found.nodes == 1


def test_openshift_is_told_by_node_feature_discovery_or_by_kubernetes(cluster):
    cluster.server_version = "v1.33.8"
    os = {"os_image": "Red Hat Enterprise Linux CoreOS 9.6.20260303-1 (Plow)", "container_runtime": "cri-o://1.34.5"}
    make.a_node(cluster, **AS_LISTED | os, labels={OPENSHIFT: "4.21"})
    silent = make.a_node(cluster, **AS_LISTED | os)

    found = compared(cluster)

    assert nodes_of(found, "Operator 26.7.0, Red Hat CoreOS, OpenShift 4.21") == [1]
    assert nodes_of(found, "Operator 26.7.0, Red Hat CoreOS, OpenShift 4.20") == [1]
    around = surroundings(read_drivers(cluster))
    assert "Derived from Kubernetes 1.33" in " ".join(
        verdict.sentence for verdict in compare_node(silent, around, today=TODAY)
    )


def test_a_switch_that_is_for_opting_in_is_off_where_nobody_set_it(cluster):
    make.a_node(cluster, **AS_LISTED | {"container_runtime": "cri-o://1.36.0"})

    assert not nodes_of(compared(cluster), "NRI")


def test_images_of_ubuntu_26_04_are_asked_for_only_where_the_operator_installs_the_driver(cluster):
    ubuntu = AS_LISTED | {"os_image": "Ubuntu 26.04 LTS", "driver_version": "580.173.02"}
    make.a_node(cluster, **ubuntu, labels={"nvidia.com/gpu.deploy.driver": "pre-installed"})
    make.a_node(cluster, **ubuntu, labels={"nvidia.com/gpu.deploy.driver": "true"})

    assert nodes_of(compared(cluster), "Ubuntu 26.04, driver 580.173.02") == [1]


def test_kernel_modules_are_those_of_the_driver_that_owns_the_node(cluster):
    cluster.driver_objects.update(uses_driver_crd=True, kernel_modules="proprietary")
    make.a_driver_object(cluster, "b200", kernel_modules="open")
    make.a_driver_object(cluster, "old", kernel_modules="proprietary")
    blackwell = AS_LISTED | {"gpu_product": "NVIDIA-B200"}
    make.a_node(cluster, **blackwell, driver_owner="b200")
    make.a_node(cluster, **blackwell, driver_owner="old")

    assert nodes_of(compared(cluster), "Proprietary kernel modules on Grace and Blackwell") == [1]


def test_a_policy_that_leaves_drivers_to_the_nodes_asks_for_no_modules(cluster):
    cluster.driver_objects.update(is_driver_off=True, kernel_modules="proprietary")
    make.a_node(cluster, **AS_LISTED | {"gpu_product": "NVIDIA-B200"})

    assert not nodes_of(compared(cluster), "Proprietary")


def test_aks_is_told_by_its_label_as_its_version_does_not_name_it(cluster):
    azure = AS_LISTED | {"kernel": "6.8.0-1034-azure"}
    node = make.a_node(cluster, **azure, labels={AKS: "MC_ml_east"})
    make.a_node(cluster, **azure)

    found = compared(cluster)

    assert nodes_of(found, "Operator 26.7.0, Ubuntu 24.04, AKS 1.36") == [1]
    assert nodes_of(found, "Operator 26.7.0, Ubuntu 24.04, Kubernetes 1.36") == [1]
    around = surroundings(read_drivers(cluster))
    assert "Operator 26.7.0, Ubuntu 24.04, AKS 1.36" in [
        each.subject for each in compare_node(node, around, today=TODAY)
    ]


def test_the_kept_sums_and_the_nodes_that_are_read_for_their_labels_are_all_of_them(cluster):
    """Each answer is about as many nodes as would get it one by one."""
    azure, ubuntu_26 = {"kernel": "6.8.0-1034-azure"}, {"os_image": "Ubuntu 26.04 LTS"}
    make.a_node(cluster, **AS_LISTED)
    make.a_node(cluster, **AS_LISTED | azure, labels={AKS: "MC_ml_east"})
    make.a_node(cluster, **AS_LISTED | ubuntu_26, labels={DEPLOY_DRIVER: PRE_INSTALLED})
    make.a_node(cluster, **AS_LISTED, driver_unknown_since=NOON)
    around = surroundings(read_drivers(cluster))

    found = compared(cluster)

    one_by_one = Counter(verdict for node in Node.objects.all() for verdict in compare_node(node, around, today=TODAY))
    assert {line.verdict: line.nodes for line in found.lines} == one_by_one
    assert (found.nodes, found.groups) == (4, 4)
