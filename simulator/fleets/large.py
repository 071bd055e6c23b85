"""A fleet of the size that all is measured at: per node eight GPUs, eight operands and two tenants.

5,000 nodes are 40,000 GPUs and 50,000 pods, 40,000 of them operands.
"""

from simulator.actors.gpu_operator.release import Release
from simulator.fleets.machines import Machine
from simulator.fleets.mixes import A100, H100, TORCH, VLLM, mixed
from simulator.fleets.plan import INSTANCE_TYPE, Plan
from simulator.fleets.small import KERNELS
from simulator.fleets.tenants import Workload

MIX = "h100=54,a100=36,mig-single=3,mig-mixed=2,time-slicing=3,dra=2"
CPU_NODES = 10
RACK_NODES = 500  # nodes that share a team's services
TRITON = "nvcr.io/nvidia/tritonserver:25.09-py3"
SLICED, SHARED = f"{H100.product}-MIG-1g.10gb", f"{A100.product}-SHARED"
ABSENT = "NVIDIA-H200"  # what waits for it waits for ever, as in every fleet somebody does
# Name, image, GPUs, pods for a hundred nodes, what they run on, priority. Nine GPUs of ten are taken.
TENANTS = (
    ("pretrain", TORCH, 8, 40, H100.product, "training"),
    ("rerank", TRITON, 1, 50, H100.product, "inference"),
    ("chat-70b", VLLM, 4, 30, A100.product, "inference"),
    ("embed-7b", VLLM, 2, 40, A100.product, "inference"),
    ("sweep", TORCH, 1, 30, A100.product, "queue"),
    ("notebook", VLLM, 1, 5, SLICED, "inference"),
    ("classroom", VLLM, 1, 5, SHARED, "inference"),
)


def large(*, nodes: int = 5000, seed: int = 1, release: Release | None = None) -> Plan:
    """`seed` turns the pattern of kernels."""
    gpu = (machine for machine in mixed(nodes=nodes, seed=seed, mix=MIX).machines if machine.sku)
    cpu = (Machine(f"cpu-{index + 1:03}", nodes + index, "region-1a", KERNELS[0]) for index in range(CPU_NODES))
    return Plan((*gpu, *cpu), _workloads(nodes), release=release or Release(), selects_by=INSTANCE_TYPE)


def _workloads(nodes: int) -> tuple[Workload, ...]:
    """Racks have services of their own: with a budget of one for all of them, nothing could be changed."""
    racks = -(-nodes // RACK_NODES)
    found = [workload for rack in range(racks) for workload in _of_rack(rack, nodes // racks + (rack < nodes % racks))]
    waiting = Workload("frontier-pretrain", "frontier", TORCH, 8, max(1, nodes // 250), "training", ABSENT)
    return (*(workload for workload in found if workload.replicas), waiting)


def _of_rack(rack: int, nodes: int) -> list[Workload]:
    team = f"team-{rack + 1:02}"
    return [
        Workload(
            f"{called}-{rack + 1}",
            team,
            image,
            gpus,
            nodes * share // 100,
            priority,
            product,
            budget=1 if priority == "inference" else None,
        )
        for called, image, gpus, share, product, priority in TENANTS
    ]
