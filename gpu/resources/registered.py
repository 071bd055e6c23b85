"""The GPUs that HAMi's device plugin registers in a node annotation, for its scheduler and Volcano's.

Project-HAMi/website, docs/developers/protocol.md: a JSON array; before that id,count,devmem,devcore,type,numa,health
and later index,mode, each terminated by a colon (HAMi issues/314, issues/1422); Volcano's is shorter:
id,count,devmem,type,health. The memory may be scaled (issues/1422), so it may differ from the board's.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu import labels as keys
from gpu.resources.names import product_in

UUID = re.compile(r"GPU-[0-9A-Za-z-]{1,60}")
BOARDS_AT_MOST, USERS_AT_MOST = 128, 10_000
VENDOR = "NVIDIA-"  # before the model


@dataclass(frozen=True)
class Registered:
    uuid: str
    users: int  # pods that may share it
    product: str
    is_healthy: bool = True


def registered_in(annotations: Mapping[str, str]) -> tuple[Registered, ...]:
    """Returns the registered GPUs. Empty: none, or an unknown format."""
    text = next((annotations[key] for key in keys.GPUS_REGISTERED if annotations.get(key)), "")
    boards_found = _json(text) if text.startswith("[") else _commas(text)
    return tuple(boards_found)[:BOARDS_AT_MOST]


def assigned_in(annotations: Mapping[str, str]) -> list[str]:
    """Returns the UUIDs of the GPUs that a scheduler chose for a pod: GPU-…,NVIDIA,3000,30:; or only GPU-…."""
    text = next((annotations[key] for key in keys.GPUS_ASSIGNED if annotations.get(key)), "")
    return sorted(set(UUID.findall(text[:16_384])))


def gpu_groups(labels: Mapping[str, str]) -> list[str]:
    """Returns the KAI (Run:ai) groups of a pod that holds or shares a GPU. Empty: neither."""
    start = f"{keys.GPU_GROUP}/"
    return sorted({labels[key] for key in labels if key.startswith(start) or key == keys.GPU_GROUP})


def asks_for_part(annotations: Mapping[str, str]) -> bool:
    """Tells whether a pod asks KAI for a part of a GPU. It then requests no GPU, and has no group until it is placed.

    kai-scheduler/KAI-Scheduler, docs/gpu-sharing.
    """
    return "gpu-fraction" in annotations or "gpu-memory" in annotations


def users_of(boards: Sequence[Registered]) -> int | None:
    """Returns the users per board. None: different among boards."""
    counts = {board.users for board in boards}
    return counts.pop() if len(counts) == 1 else None


def _json(text: str) -> Iterator[Registered]:
    try:
        boards: Any = json.loads(text)
    except Exception:  # noqa: BLE001 - of any class
        return  # the node then counts as without registration, which its page shows
    for board in boards if isinstance(boards, list) else ():
        if isinstance(board, dict):
            yield from _board(
                board.get("id"), board.get("count"), board.get("type"), is_healthy=board.get("health") is not False
            )


def _commas(text: str) -> Iterator[Registered]:
    for part in text.split(":"):
        uuid, *rest = part.strip().split(",")
        words = [word for word in rest if not word.isdecimal()]
        if rest and rest[0].isdecimal() and words:
            yield from _board(uuid, int(rest[0][:9]), words[0], is_healthy="false" not in words)


def _board(uuid: Any, users: Any, product: Any, *, is_healthy: bool) -> Iterator[Registered]:
    if isinstance(uuid, str) and UUID.fullmatch(uuid) and isinstance(users, int) and 0 < users <= USERS_AT_MOST:
        yield Registered(uuid, users, product_in(str(product or "").removeprefix(VENDOR)), is_healthy)
