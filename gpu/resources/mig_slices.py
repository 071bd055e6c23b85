"""The number of slices of a profile per board. Pure.

docs.nvidia.com/datacenter/tesla/mig-user-guide, supported-gpus and supported-mig-profiles: memory, the most
instances, and each profile's fractions of both. A board of 7 instances has 8 parts of memory, others as many as
instances.
"""

import re
from collections.abc import Mapping

PROFILE = re.compile(r"^(\d)g\.(\d+)gb")
MEMORY_IN_NAME = re.compile(r"(\d+)GB")
# By the end of a product's name: GB of memory, and the most instances.
BOARDS: tuple[tuple[re.Pattern[str], int, int], ...] = tuple(
    (re.compile(pattern), memory, most)
    for pattern, memory, most in (
        (r"A30X?$", 24, 4),
        (r"RTX-PRO-6000-Blackwell", 96, 4),
        (r"RTX-PRO-5000-Blackwell", 48, 2),
        (r"RTX-PRO-4500-Blackwell", 32, 2),
        (r"H20$", 96, 7),
        (r"H200", 141, 7),
        (r"GB200", 186, 7),
        (r"(?<!G)B200", 180, 7),
        (r"B300", 269, 7),
    )
)
MOST = 7
# Parts of the memory of a board by the slices of compute in a profile, by the most instances of the board.
MEMORY_PARTS: Mapping[int, Mapping[int, tuple[int, ...]]] = {
    7: {1: (1, 2), 2: (2,), 3: (4,), 4: (4,), 7: (8,)},
    4: {1: (1,), 2: (2,), 4: (4,)},
    2: {1: (1,), 2: (2,)},
}
WITHOUT_MIG = re.compile(r"(?<![A-Z0-9])(?:T4|V100|P\d+|K80|L\d+S?|A2|A10G?|A16|A40)(?![A-Z0-9])")
SEVERAL_MEMORIES = "GH200"  # one name for boards of 96 and 144 GB


def slices_of_a_board(profile: str, product: str) -> int:
    """Returns the most slices per board. 0: unknown profile."""
    match = PROFILE.match(profile)
    if match is None or not int(match[1]):
        return 0
    memory, most = _board(product)
    by_compute = most // int(match[1])
    if not memory:
        return by_compute
    parts = _parts(most)
    taken = max(1, round(int(match[2]) * parts / memory))
    return min(by_compute, parts // taken)


def may_have_profile(profile: str, product: str) -> bool:
    """Tells whether boards of a product can be cut to a profile. A product of unknown memory may have it."""
    match = PROFILE.match(profile)
    if WITHOUT_MIG.search(product):
        return False
    memory, most = _board(product)
    if match is None or not memory or SEVERAL_MEMORIES in product:
        return True
    parts = MEMORY_PARTS[most].get(int(match[1]), ())
    return any(abs(int(match[2]) - memory * part / _parts(most)) <= 1 for part in parts)


def profile_of_size(profile: str, product: str) -> str:
    """Returns the profile of a product with the same compute. Blank: none is known."""
    match, (memory, most) = PROFILE.match(profile), _board(product)
    parts = MEMORY_PARTS[most].get(int(match[1])) if match else None
    if not parts or not memory or SEVERAL_MEMORIES in product or WITHOUT_MIG.search(product):
        return ""
    return f"{profile[0]}g.{int(memory * parts[0] / _parts(most) + 0.5)}gb"


def _parts(most: int) -> int:
    return 8 if most == MOST else most


def compute_slices_of_a_board(product: str) -> int:
    return _board(product)[1]


def _board(product: str) -> tuple[int, int]:
    """Returns the memory in GB (0: unknown) and the most instances."""
    for pattern, memory, most in BOARDS:
        if pattern.search(product):
            return memory, most
    named = MEMORY_IN_NAME.search(product)
    return int(named[1]) if named else 0, MOST
