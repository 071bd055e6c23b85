"""A busy fleet of two SKUs on two kernels, with its operator, its tenants, and a queue for every GPU left over."""

from dataclasses import replace

from simulator.actors.gpu_operator.release import Release
from simulator.actors.skus import SKUS
from simulator.fleets.machines import Machine
from simulator.fleets.plan import DRIVER_NOW, Mode, Plan
from simulator.fleets.tenants import Workload

GPUS_A_NODE = 8
KERNELS = ("5.15.0-151-generic", "6.8.0-64-generic")
WAITING = 40  # replicas of the queue that find no GPU: more than any wave sets free
TEAM_NODES = 64  # a fleet of this size has one of each workload
H100, A100 = SKUS["NVIDIA-H100-80GB-HBM3"], SKUS["NVIDIA-A100-SXM4-80GB"]


def small(*, nodes: int = 64, seed: int = 1, release: Release | None = None) -> Plan:
    """`seed` turns the pattern of kernels; everything else follows from the number of GPU nodes."""
    release = release or Release()
    machines = (*_gpu_machines(nodes, seed), *_cpu_machines(nodes))
    return Plan(machines, _workloads(nodes), release=release)


def cluster_policy(*, nodes: int = 64, seed: int = 1, release: Release | None = None) -> Plan:
    """The same fleet where the ClusterPolicy says the one driver version of the cluster, as most do."""
    plan = small(nodes=nodes, seed=seed, release=release)
    return replace(plan, mode=Mode.CLUSTER_POLICY, machines=tuple(replace(each, owner="") for each in plan.machines))


def _gpu_machines(nodes: int, seed: int) -> list[Machine]:
    made = []
    for index in range(nodes):
        sku = H100 if index < (nodes + 1) // 2 else A100
        short = "h100" if sku is H100 else "a100"
        made.append(
            Machine(
                name=f"gpu-{short}-{index + 1:03}",
                index=index,
                zone=f"region-1{'ab'[index % 2]}",
                # Two of five nodes of each SKU, in both zones, run the newer kernel.
                kernel=KERNELS[(index + seed) % 5 in (1, 4)],
                sku=sku,
                gpus=GPUS_A_NODE,
                driver=DRIVER_NOW,
                owner=short,
            )
        )
    return made


def _cpu_machines(nodes: int) -> list[Machine]:
    count = max(2, nodes // 20)
    return [
        Machine(f"cpu-{index + 1:03}", nodes + index, f"region-1{'ab'[index % 2]}", KERNELS[0])
        for index in range(count)
    ]


def _workloads(nodes: int) -> tuple[Workload, ...]:
    """Training on a quarter of the nodes, services on three quarters of what is left, the queue on the rest."""
    gpus = nodes * GPUS_A_NODE
    pretrain, finetune = max(nodes > 1, nodes // 8), nodes // 8
    services = (gpus - GPUS_A_NODE * (pretrain + finetune)) * 3 // 4
    vllm, triton = "docker.io/vllm/vllm-openai:v0.11.0", "nvcr.io/nvidia/tritonserver:25.09-py3"
    torch = "nvcr.io/nvidia/pytorch:25.09-py3"
    named = (
        Workload("llm-pretrain", "pretraining", torch, 8, int(pretrain), "training", H100.product),
        Workload("vision-finetune", "pretraining", torch, 8, finetune, "training"),
        Workload("chat-70b", "chat", vllm, 4, services // 8, "inference", budget=1),
        Workload("embed-7b", "search", vllm, 2, services // 8, "inference", budget=1),
        Workload("rerank", "search", triton, 1, services // 8 + 1, "inference", budget=1),
        Workload("detector", "vision", triton, 1, services // 8 + 1, "inference", budget=1),
    )
    parts = tuple(part for workload in named for part in _parts(workload, max(1, -(-nodes // TEAM_NODES))))
    left = gpus - sum(workload.gpus * workload.replicas for workload in parts)
    queue = Workload("sweep", "batch", torch, 1, max(0, left) + WAITING, "queue")
    return (*(workload for workload in parts if workload.replicas), queue)


def _parts(workload: Workload, count: int) -> list[Workload]:
    """A large fleet has more services, not larger ones: a budget of one would stop it."""
    base, more = divmod(workload.replicas, count)
    sizes = [base + (index < more) for index in range(count)]
    names = [workload.name, *(f"{workload.name}-{index + 1}" for index in range(1, count))]
    return [replace(workload, name=name, replicas=size) for name, size in zip(names, sizes, strict=True)]
