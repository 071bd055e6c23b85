"""What says which driver runs. Rows are never saved: it reads them and asks nothing."""

import pytest

from fleet.drivers.mode import DriverSetBy, mode_of, operator_of
from fleet.models import DriverObject, Operand, Workload

VALIDATOR = Operand(
    operand="operator-validator", name="nvidia-operator-validator", image="nvcr.io/nvidia/gpu-operator:v26.3.0"
)


def a(kind, name="x", **given):
    return DriverObject(kind=kind, name=name, **{"state": "ready"} | given)


POLICY = a("ClusterPolicy", "cluster-policy")
WITH_CRD = a("ClusterPolicy", "cluster-policy", uses_driver_crd=True)


@pytest.mark.parametrize(
    ("objects", "mode", "word"),
    [
        ([POLICY], DriverSetBy.CLUSTER_POLICY, "one driver version for every GPU node"),
        ([POLICY, a("NVIDIADriver")], DriverSetBy.CLUSTER_POLICY, "1 NVIDIADriver exist without effect"),
        (
            [WITH_CRD, a("NVIDIADriver"), a("NVIDIADriver", "y")],
            DriverSetBy.NVIDIA_DRIVER,
            "2 NVIDIADrivers choose the driver",
        ),
        (
            [a("GPUCluster", "gpu-cluster"), a("NVIDIADriver")],
            DriverSetBy.GPU_CLUSTER,
            "Dynamic Resource Allocation allocates the GPUs",
        ),
        ([], DriverSetBy.NONE, "cannot change them"),
    ],
)
def test_says_what_says_which_driver_runs(objects, mode, word):
    found = mode_of(objects, operator="26.7.0")

    assert found.mode is mode
    assert word in " ".join(found.sentences)
    assert not found.problem


@pytest.mark.parametrize(
    ("objects", "mode", "word"),
    [
        ([POLICY, a("GPUCluster")], DriverSetBy.SEVERAL, "the operator reconciles neither"),
        ([POLICY, a("ClusterPolicy", "other", state="ignored")], DriverSetBy.CLUSTER_POLICY, "ClusterPolicies"),
        (
            [WITH_CRD],
            DriverSetBy.NVIDIA_DRIVER,
            "The ClusterPolicy leaves drivers to NVIDIADrivers, but no NVIDIADriver exists",
        ),
        (
            [a("NVIDIADriver")],
            DriverSetBy.NONE,
            "exist without effect, because neither a ClusterPolicy nor a GPUCluster exists",
        ),
    ],
)
def test_says_what_is_wrong_with_it(objects, mode, word):
    found = mode_of(objects, operator="26.7.0")

    assert found.mode is mode
    assert word in found.problem


@pytest.mark.parametrize(
    ("operator", "word"),
    [
        ("26.3.3", "limits the upgrades of all NVIDIADrivers together, by the upgrade policy of the ClusterPolicy"),
        ("26.7.0", "Each NVIDIADriver has its own upgrade policy, which counts only its own nodes"),
        ("", "From operator"),
    ],
)
def test_whose_upgrade_policy_counts_depends_on_the_operator(operator, word):
    found = mode_of([WITH_CRD, a("NVIDIADriver")], operator=operator)

    assert any(word in sentence for sentence in found.sentences)


@pytest.mark.parametrize("unseen", ["ClusterPolicy", "GPUCluster"])
def test_what_may_not_be_read_is_not_known_rather_than_none(unseen):
    found = mode_of([a("NVIDIADriver")], operator="", unseen=[unseen])

    assert (found.mode, found.problem) == (DriverSetBy.UNKNOWN, "")
    assert "cannot be read here, so it is unknown which object chooses the driver" in found.sentences[0]


@pytest.mark.parametrize(
    ("there", "unseen", "word"),
    [
        (POLICY, "GPUCluster", "GPUClusters cannot be read here. If such an object exists too"),
        (a("GPUCluster"), "ClusterPolicy", "ClusterPolicies cannot be read here. If such an object exists too"),
        (WITH_CRD, "NVIDIADriver", "NVIDIADrivers cannot be read here"),
        (a("GPUCluster"), "NVIDIADriver", "from the host or an NVIDIADriver: NVIDIADrivers cannot be read here"),
    ],
)
def test_what_may_be_there_and_cannot_be_read_is_said_beside_what_is(there, unseen, word):
    seen, found = (mode_of([there], operator="26.7.0", unseen=kinds) for kinds in ((), (unseen,)))

    assert (found.mode, found.problem) == (seen.mode, "")
    assert word in " ".join(found.sentences)
    assert word not in " ".join(seen.sentences)


def test_sandbox_workloads_turn_the_upgrade_controller_off():
    found = mode_of([a("ClusterPolicy", sandbox_workloads=True)], operator="26.7.0")

    assert any(
        "Sandbox workloads are enabled, which disables the operator's upgrade controller" in sentence
        for sentence in found.sentences
    )


@pytest.mark.parametrize(
    ("objects", "operands", "version", "place"),
    [
        ([a("ClusterPolicy", operator_version="v26.7.0")], [], "26.7.0", "labels of ClusterPolicy x"),
        ([a("ClusterPolicy", operand_versions={"operator-validator": "v25.3.0"})], [], "25.3.0", "the validator that"),
        ([a("ClusterPolicy", operator_version="latest")], [VALIDATOR], "26.3.0", "the image of DaemonSet"),
        ([a("NVIDIADriver", operator_version="v26.7.0")], [], "", ""),
        ([], [], "", ""),
    ],
)
def test_the_version_of_the_operator_and_where_it_was_read(objects, operands, version, place):
    found = operator_of(objects, operands)

    assert found.version == version
    assert found.read_from.startswith(place)


def test_places_that_disagree_on_the_operator_are_said():
    found = operator_of([a("ClusterPolicy", operator_version="v26.7.0")], [VALIDATOR])

    assert found.version == "26.7.0"
    assert found.disagreement == "The image of DaemonSet nvidia-operator-validator says 26.3.0."


def test_the_operator_of_operator_hub_says_its_version_itself():
    deployment = Workload(kind="Deployment", namespace="gpu", name="gpu-operator", operator_version="v24.6.1")

    found = operator_of([a("ClusterPolicy")], [], [deployment])

    assert (found.version, found.read_from) == ("24.6.1", "Deployment gpu/gpu-operator")


def test_a_policy_that_installs_no_driver_says_whose_it_is():
    policy = DriverObject(kind="ClusterPolicy", name="cluster-policy", version="580.105.08", is_driver_off=True)
    mode = mode_of([policy], operator="25.10.1")

    assert mode.mode is DriverSetBy.CLUSTER_POLICY
    assert "driver.enabled: false" in mode.sentences[0]
    assert mode.problem == ""
