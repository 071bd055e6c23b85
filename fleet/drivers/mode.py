"""The controller of driver versions in a cluster, and the operator that acts on it.

Modes and their limits: gpu-operator, docs (gpu-driver-configuration.rst, dra-intro-install.rst), release notes of
26.3.0 and 26.7.0, controllers/active_config.go, where they are validated.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from fleet.models import DriverObject, Operand, Workload
from gpu.compatibility.ranges import is_older, numbers
from gpu.operands import VALIDATOR
from gpu.versions import agree, tag_of
from wording.numbers import count

SANDBOXED = (
    "Sandbox workloads are enabled, which disables the operator's upgrade controller. The operator does not roll "
    "out drivers."
)
DRIVER_OFF = (
    "The ClusterPolicy installs no driver (driver.enabled: false). The driver comes with the node image, so "
    "Quarterdeck shows it and never changes it. The ClusterPolicy runs all other operands."
)
OF_A_CLUSTER = {"ClusterPolicy": "ClusterPolicies", "GPUCluster": "GPUClusters"}  # mutually exclusive
DRIVER, UNREAD_DRIVERS = "NVIDIADriver", "NVIDIADrivers cannot be read here"
OWN_POLICIES_FROM = "26.7.0"  # since then each NVIDIADriver has its own upgrade policy


class DriverSetBy(StrEnum):
    CLUSTER_POLICY = "ClusterPolicy"
    NVIDIA_DRIVER = "NVIDIADriver"
    GPU_CLUSTER = "GPUCluster"
    SEVERAL = "several"  # mutually exclusive objects
    NONE = "none"
    UNKNOWN = "unknown"  # unreadable


@dataclass(frozen=True)
class DriverMode:
    mode: DriverSetBy
    title: str
    sentences: tuple[str, ...]  # explanation
    problem: str = ""  # blank: none


@dataclass(frozen=True)
class RunningOperator:
    version: str  # blank: unknown
    read_from: str  # "labels of ClusterPolicy cluster-policy"; blank: unknown
    disagreement: str = ""  # another place with another version


def mode_of(objects: Sequence[DriverObject], *, operator: str, unseen: Collection[str] = ()) -> DriverMode:
    """Returns the mode. `unseen` are the kinds whose absence is not certain."""
    policies = [each for each in objects if each.kind == "ClusterPolicy"]
    drivers = [each for each in objects if each.kind == DRIVER]
    gpu_clusters = [each for each in objects if each.kind == "GPUCluster"]
    unread = " and ".join(plural for kind, plural in OF_A_CLUSTER.items() if kind in unseen)
    if not policies and not gpu_clusters and unread:
        sentence = f"{unread} cannot be read here, so it is unknown which object chooses the driver."
        return DriverMode(DriverSetBy.UNKNOWN, "Not known", (sentence,))
    if policies and gpu_clusters:
        problem = "A ClusterPolicy and a GPUCluster exclude each other: the operator reconciles neither. Delete one."
        return DriverMode(DriverSetBy.SEVERAL, "ClusterPolicy and GPUCluster", (), problem)
    are_seen = bool(drivers) or DRIVER not in unseen
    if gpu_clusters:
        return with_unread_kinds_note(_gpu_cluster(drivers, are_seen=are_seen), unread)
    if policies:
        return with_unread_kinds_note(_policy(policies, drivers, operator, are_seen=are_seen), unread)
    return _mode_without_policy(drivers)


def with_unread_kinds_note(mode: DriverMode, unread: str) -> DriverMode:
    """Adds a note about unreadable kinds that exclude the found objects."""
    if not unread:
        return mode
    sentence = f"{unread} cannot be read here. If such an object exists too, the operator reconciles neither."
    return replace(mode, sentences=(*mode.sentences, sentence))


def _gpu_cluster(drivers: Sequence[DriverObject], *, are_seen: bool) -> DriverMode:
    none = "the host, because no NVIDIADriver exists" if are_seen else f"the host or an NVIDIADriver: {UNREAD_DRIVERS}"
    source = f"{_count(drivers)} or the host" if drivers else none
    return DriverMode(
        DriverSetBy.GPU_CLUSTER,
        "GPUCluster: DRA instead of the device plugin",
        (
            "Dynamic Resource Allocation allocates the GPUs. No device plugin and no GPU feature discovery run.",
            "Nodes have no GPU labels, so driver versions are read from ResourceSlices.",
            f"The driver comes from {source}. NVIDIA calls this mode experimental.",
        ),
    )


def _policy(
    policies: Sequence[DriverObject], drivers: Sequence[DriverObject], operator: str, *, are_seen: bool
) -> DriverMode:
    active = next((each for each in policies if each.state != "ignored"), policies[0])
    problem = ""
    if len(policies) > 1:
        problem = f"The cluster has {len(policies)} ClusterPolicies. The operator uses only the oldest."
    sandboxed = (SANDBOXED,) if active.sandbox_workloads else ()
    if active.uses_driver_crd:
        return DriverMode(
            DriverSetBy.NVIDIA_DRIVER, "NVIDIADriver: a driver for each group of nodes",
            (_drivers_sentence(drivers, are_seen=are_seen), _policies_of(operator), *sandboxed),
            problem or (_no_driver_problem(drivers) if are_seen else ""),
        )  # fmt: skip
    if active.is_driver_off:
        return DriverMode(
            DriverSetBy.CLUSTER_POLICY, "ClusterPolicy: no driver of its own",
            (DRIVER_OFF, *sandboxed), problem,
        )  # fmt: skip
    idle = f"{_count(drivers)} exist without effect, because the ClusterPolicy does not enable NVIDIADrivers."
    disabled = (idle,) if drivers else ()
    return DriverMode(
        DriverSetBy.CLUSTER_POLICY, "ClusterPolicy: one driver for all nodes",
        ("The ClusterPolicy names one driver version for every GPU node; pools cannot differ.", *disabled, *sandboxed),
        problem,
    )  # fmt: skip


def _drivers_sentence(drivers: Sequence[DriverObject], *, are_seen: bool) -> str:
    if not are_seen:
        return (
            f"NVIDIADrivers choose the driver of each node: {UNREAD_DRIVERS}. The ClusterPolicy runs all "
            "other operands."
        )
    return f"{_count(drivers)} choose the driver of each node. The ClusterPolicy runs all other operands."


def _no_driver_problem(drivers: Sequence[DriverObject]) -> str:
    return (
        ""
        if drivers
        else "The ClusterPolicy leaves drivers to NVIDIADrivers, but no NVIDIADriver exists. No node gets a driver."
    )


def has_own_policies(operator: str) -> bool | None:
    """Tells whether each NVIDIADriver has its own upgrade policy. None: unknown."""
    return not is_older(operator, OWN_POLICIES_FROM) if numbers(operator) else None


def _policies_of(operator: str) -> str:
    has_own = has_own_policies(operator)
    if has_own is None:
        return (
            f"From operator {OWN_POLICIES_FROM} on, each NVIDIADriver has its own upgrade policy. The operator's "
            "version is unknown."
        )
    if not has_own:
        return (
            f"Operator {operator} limits the upgrades of all NVIDIADrivers together, by the upgrade policy of "
            "the ClusterPolicy."
        )
    return "Each NVIDIADriver has its own upgrade policy, which counts only its own nodes."


def _mode_without_policy(drivers: Sequence[DriverObject]) -> DriverMode:
    if drivers:
        problem = f"{_count(drivers)} exist without effect, because neither a ClusterPolicy nor a GPUCluster exists."
        return DriverMode(DriverSetBy.NONE, "None", (), problem)
    sentence = (
        "No object of the GPU Operator chooses the driver. Drivers come with the node images, or another tool "
        "rolls them out."
    )
    return DriverMode(DriverSetBy.NONE, "None", (sentence, "Quarterdeck shows the drivers and cannot change them."))


def _count(drivers: Sequence[DriverObject]) -> str:
    return count(len(drivers), "NVIDIADriver")


def operator_of(
    objects: Sequence[DriverObject], operands: Sequence[Operand], deployments: Iterable[Workload] = ()
) -> RunningOperator:
    """Returns the operator's version from the first source: chart labels, the operator, or the validator built with
    it."""
    places = _version_sources(objects, operands, deployments)
    said = [(version.removeprefix("v"), place) for version, place in places if numbers(version)]
    if not said:
        return RunningOperator("", "")
    version, place = said[0]
    others = [f"{where} says {other}" for other, where in said[1:] if agree(version, other) is False]
    return RunningOperator(version, place, f"{others[0][0].upper()}{others[0][1:]}." if others else "")


def _version_sources(
    objects: Sequence[DriverObject], operands: Sequence[Operand], deployments: Iterable[Workload]
) -> list[tuple[str, str]]:
    policies = [each for each in objects if each.kind in {"ClusterPolicy", "GPUCluster"}]
    labelled = [(each.operator_version, f"labels of {each}") for each in policies]
    itself = [(each.operator_version, str(each)) for each in deployments]
    asked = [(each.operand_versions.get(VALIDATOR, ""), f"the validator that {each} requests") for each in policies]
    images = [
        (tag_of(each.image), f"the image of DaemonSet {each.name}") for each in operands if each.operand == VALIDATOR
    ]
    return [*labelled, *itself, *asked, *images]
