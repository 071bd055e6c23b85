"""GPU models as GFD names them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sku:
    product: str  # nvidia.com/gpu.product, and with spaces the name NVML gives
    family: str
    memory_mib: int
    compute: tuple[int, int]
    machine: str
    instance_type: str
    idle_watts: int
    busy_watts: int
    limit_watts: int
    sm_mhz: int
    memory_mhz: int
    gpus: int = 8  # in a machine
    arch: str = "amd64"

    @property
    def model_name(self) -> str:
        return (
            self.product.replace("-", " ") if "SXM4" not in self.product else self.product.replace("NVIDIA-", "NVIDIA ")
        )


SKUS = {
    sku.product: sku
    for sku in (
        Sku(
            product="NVIDIA-H100-80GB-HBM3",
            family="hopper",
            memory_mib=81559,
            compute=(9, 0),
            machine="PowerEdge-XE9680",
            instance_type="gpu.h100x8",
            idle_watts=70,
            busy_watts=640,
            limit_watts=700,
            sm_mhz=1980,
            memory_mhz=2619,
        ),
        Sku(
            product="NVIDIA-A100-SXM4-80GB",
            family="ampere",
            memory_mib=81920,
            compute=(8, 0),
            machine="PowerEdge-XE8545",
            instance_type="gpu.a100x8",
            idle_watts=60,
            busy_watts=370,
            limit_watts=400,
            sm_mhz=1410,
            memory_mhz=1593,
        ),
        Sku(
            product="NVIDIA-GB200",
            family="blackwell",
            memory_mib=189471,
            compute=(10, 0),
            machine="GB200-NVL",
            instance_type="gpu.gb200x4",
            idle_watts=150,
            busy_watts=1150,
            limit_watts=1200,
            sm_mhz=2062,
            memory_mhz=3996,
            gpus=4,
            arch="arm64",
        ),
    )
}
