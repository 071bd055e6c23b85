"""The names that NVML gives to GPUs and to MIG's instances: the same machine has the same ones every time."""

from functools import lru_cache
from hashlib import sha256


@lru_cache(maxsize=65536)
def gpu_uuid(node_name: str, index: int) -> str:
    return f"GPU-{_digits(f'{node_name}/{index}')}"


@lru_cache(maxsize=65536)
def mig_uuid(node_name: str, index: int, place: int) -> str:
    return f"MIG-{_digits(f'{node_name}/{index}/{place}')}"


def _digits(text: str) -> str:
    digest = sha256(text.encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
