"""The number of slices of a profile per board. Pure.

docs.nvidia.com/datacenter/tesla/mig-user-guide, supported-gpus and supported-mig-profiles: memory, the most
instances, and each profile's fractions of both. A board of 7 instances has 8 parts of memory, others as many as
instances.
"""

import re

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


def slices_of_a_board(profile: str, product: str) -> int:
    """Returns the most slices per board. 0: unknown profile."""
    match = PROFILE.match(profile)
    if match is None or not int(match[1]):
        return 0
    memory, most = _board(product)
    by_compute = most // int(match[1])
    if not memory:
        return by_compute
    parts = 8 if most == MOST else most
    taken = max(1, round(int(match[2]) * parts / memory))
    return min(by_compute, parts // taken)


def compute_slices_of_a_board(product: str) -> int:
    return _board(product)[1]


def _board(product: str) -> tuple[int, int]:
    """Returns the memory in GB (0: unknown) and the most instances."""
    for pattern, memory, most in BOARDS:
        if pattern.search(product):
            return memory, most
    named = MEMORY_IN_NAME.search(product)
    return int(named[1]) if named else 0, MOST
