"""Fleets of many kinds of node, told as shares: `h100=30,mig-single=10,time-slicing=10,amd=5`."""

from dataclasses import dataclass, replace
from typing import Any

from simulator.actors.gpu_operator.release import Release
from simulator.actors.sharing import DEFAULT
from simulator.actors.skus import SKUS, Sku
from simulator.fleets.machines import Machine
from simulator.fleets.plan import DRIVER_NOW, INSTANCE_TYPE, Mode, Plan
from simulator.fleets.small import KERNELS
from simulator.fleets.tenants import CLAIMED, Owner, Workload
from simulator.fleets.vendors import GAUDI, MI300X

H100, A100, GB200 = SKUS["NVIDIA-H100-80GB-HBM3"], SKUS["NVIDIA-A100-SXM4-80GB"], SKUS["NVIDIA-GB200"]
OLD_DRIVER = "570.172.08"  # what somebody has baked into an image
SPARED_NODES = 4  # as many as are upgraded at a time: no budget of a service stands in the way
DOMAIN_NODES = 18  # of an NVL72 rack
DOMAIN = "b7ac9b5e-5a0d-4b6c-9f0e-6c4f7d2f11{rack:02x}.{clique}"
VLLM, TORCH = "docker.io/vllm/vllm-openai:v0.11.0", "nvcr.io/nvidia/pytorch:25.09-py3"
ROCM, SYNAPSE = "docker.io/rocm/vllm:rocm7.0", "vault.habana.ai/gaudi-docker/1.22.0/ubuntu22.04/habanalabs/pytorch"


class UnknownMix(ValueError):
    """Not a list of kinds with numbers."""


@dataclass(frozen=True, slots=True)
class NodeKind:
    """`gpus`: how much each pod of its service asks of `room`. `machine`: what differs of its machines."""

    sku: Sku | None
    machine: dict[str, Any]
    gpus: int = 1
    room: str = "nvidia.com/gpu"
    image: str = VLLM
    team: str = "inference"
    owner: Owner = Owner.DEPLOYMENT
    is_limited: bool = False


KINDS: dict[str, NodeKind] = {
    "h100": NodeKind(H100, {}, gpus=8, image=TORCH, team="pretraining", owner=Owner.JOB),
    "a100": NodeKind(A100, {}, gpus=2, team="search"),
    "mig-single": NodeKind(H100, {"mig": "all-1g.10gb"}, team="notebooks"),
    "mig-mixed": NodeKind(H100, {"mig": "all-balanced", "plugin": "mig-mixed"}, room="nvidia.com/mig-2g.20gb"),
    "mig-half": NodeKind(A100, {"mig": "half-balanced", "plugin": "mig-mixed"}, room="nvidia.com/mig-3g.40gb"),
    "time-slicing": NodeKind(A100, {"plugin": "time-slicing-4"}, team="notebooks"),
    "renamed": NodeKind(A100, {"plugin": "time-slicing-4-renamed"}, room="nvidia.com/gpu.shared", team="notebooks"),
    "mps": NodeKind(A100, {"plugin": "mps-10"}, team="vision"),
    "dra": NodeKind(H100, {"has_claims": True}, room=CLAIMED, team="agents"),
    "preinstalled": NodeKind(
        A100,
        {"is_preinstalled": True, "driver": OLD_DRIVER, "has_own_exporter": True},
        team="research",
        owner=Owner.REPLICA_SET,
    ),
    "spot": NodeKind(A100, {"is_spot": True}, gpus=4, image=TORCH, team="batch", owner=Owner.JOB, is_limited=True),
    "nvlink": NodeKind(GB200, {}, gpus=4, image=TORCH, team="frontier", owner=Owner.STATEFUL_SET),
    "amd": NodeKind(None, {"accelerators": MI300X}, gpus=8, room="amd.com/gpu", image=ROCM, team="amd"),
    "gaudi": NodeKind(None, {"accelerators": GAUDI}, gpus=8, room="habana.ai/gaudi", image=SYNAPSE, team="gaudi"),
}
EVERYTHING = (
    "h100=20,a100=12,mig-single=8,mig-mixed=6,mig-half=4,time-slicing=8,renamed=4,mps=4,dra=6,preinstalled=4,spot=6,"
    "nvlink=8,amd=4,gaudi=2"
)


def mixed(
    *, nodes: int = 96, seed: int = 1, release: Release | None = None, mix: str = EVERYTHING, mode: str = ""
) -> Plan:
    """:raises UnknownMix:"""
    counts = shares(mix, nodes)
    how, release = Mode(mode or Mode.NVIDIA_DRIVER), release or Release()
    if how is Mode.GPU_CLUSTER and not release.is_26_7:
        raise UnknownMix("GPUCluster is there from v26.7 of the operator on")
    machines = [*_machines(counts, seed, how), *_cpu_machines(nodes)]
    workloads = tuple(_service(kind, count, how) for kind, count in counts.items() if count)
    return Plan(tuple(machines), workloads, release=release, mode=how, has_agent=True, selects_by=INSTANCE_TYPE)


def shares(mix: str, nodes: int) -> dict[str, int]:
    """Nodes of each kind. What rounding leaves over goes to kinds that would have none, then to the largest fractions.

    :raises UnknownMix:
    """
    asked = dict(_share(part) for part in mix.split(",") if part)
    total = sum(asked.values())
    if not total:
        raise UnknownMix(f"a mix names at least one of {', '.join(KINDS)}")
    exact = {kind: share * nodes / total for kind, share in asked.items()}
    counts = {kind: int(each) for kind, each in exact.items()}
    by_fraction = sorted(exact, key=lambda kind: (counts[kind] > 0, counts[kind] - exact[kind]))
    for kind in by_fraction[: nodes - sum(counts.values())]:
        counts[kind] += 1
    return counts


def _share(part: str) -> tuple[str, float]:
    kind, _, share = part.partition("=")
    try:
        number = float(share)
    except ValueError as error:
        raise UnknownMix(f"{part!r} is not KIND=SHARE") from error
    if kind not in KINDS or not 0 < number < float("inf"):
        raise UnknownMix(f"{part!r}: a share above 0 of one of {', '.join(KINDS)}")
    return kind, number


def _machines(counts: dict[str, int], seed: int, mode: Mode) -> list[Machine]:
    made: list[Machine] = []
    for kind, count in counts.items():
        made += [_machine(kind, number, len(made) + number, seed, mode) for number in range(count)]
    return made


def _machine(kind: str, number: int, index: int, seed: int, mode: Mode) -> Machine:
    about = KINDS[kind]
    plain = Machine(
        name=f"gpu-{kind}-{number + 1:03}",
        index=index,
        zone=f"region-1{'ab'[index % 2]}",
        kernel=KERNELS[(index + seed) % 5 in (1, 4)],
        sku=about.sku,
        gpus=about.sku.gpus if about.sku else 0,
        driver=DRIVER_NOW if about.sku else "",
        owner=_owner(about.sku, mode),
        clique=_clique(number) if about.sku is GB200 else "",
    )
    machine = replace(plain, **about.machine)
    return (
        replace(machine, has_claims=True, is_in_gpu_cluster=True, plugin=DEFAULT)
        if _must_claim(machine, mode)
        else machine
    )


def _must_claim(machine: Machine, mode: Mode) -> bool:
    """Without a device plugin, DRA is the only way to a GPU."""
    return mode is Mode.GPU_CLUSTER and machine.sku is not None


def _owner(sku: Sku | None, mode: Mode) -> str:
    if sku is None or mode is Mode.CLUSTER_POLICY:
        return ""
    return sku.instance_type.removeprefix("gpu.").partition("x")[0]


def _clique(number: int) -> str:
    return DOMAIN.format(rack=number // DOMAIN_NODES, clique=32766)


def _cpu_machines(nodes: int) -> list[Machine]:
    return [
        Machine(f"cpu-{number + 1:03}", nodes + number, f"region-1{'ab'[number % 2]}", KERNELS[0])
        for number in range(max(2, nodes // 20))
    ]


def _service(kind: str, count: int, mode: Mode) -> Workload:
    """One service for each kind of node, that leaves an eighth of it free, and can spare the pods of some nodes."""
    about = KINDS[kind]
    machine = _machine(kind, 0, 0, 1, mode)
    room = CLAIMED if machine.has_claims else about.room
    of_one = machine.rooms.get(room, 0) // about.gpus
    fitting = of_one * count
    priority = "training" if about.gpus == 8 else "inference"
    budget = max(1, of_one) * SPARED_NODES if priority == "inference" else None
    return Workload(
        name=kind,
        namespace=about.team,
        image=about.image,
        gpus=about.gpus,
        replicas=max(1, fitting * 7 // 8),
        priority=priority,
        product=machine.product,
        budget=budget,
        room=room,
        owner=about.owner,
        is_limited=about.is_limited,
    )
