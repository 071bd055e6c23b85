"""The test that exercises what failed, by the rule of the finding and its Xid. Pure.

A validation that does not exercise the fault proves nothing about it. Sources: NVIDIA's Xid catalogue and dcgmi diag
(docs.nvidia.com/deploy/xid-errors, docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html).
"""

from collections.abc import Collection, Mapping

USUAL = ("dcgm-3",)
LINKS = ("nccl", "dcgm-3")  # NVLink, between GPUs
PCIE = ("nvbandwidth", "dcgm-3")
SOFTWARE = ("dcgm-2",)  # GSP, driver
OF_XIDS: Mapping[int, tuple[str, ...]] = {
    **dict.fromkeys((74, *range(144, 151)), LINKS),
    **dict.fromkeys((109, 119, 120, 143), SOFTWARE),
}
OF_RULES: Mapping[str, tuple[str, ...]] = {
    "gpu-nvlink-errors": LINKS,
    "gpu-nvlink-quiet": LINKS,
    "gpu-fabric": LINKS,
    "gpu-pcie-replays": PCIE,
    "operand-down": SOFTWARE,
    "pods-failing": SOFTWARE,
    "workload-fails-here": USUAL,
}


LEVELS = ("dcgm-2", "dcgm-3", "dcgm-4")  # each runs the tests of the ones before


def needed_tests(rule: str, xid: int | None) -> list[str]:
    """Returns the keys of the tests that exercise the fault, the first choice first."""
    wanted = OF_XIDS.get(xid or 0) or OF_RULES.get(rule, USUAL)
    lowest = min((LEVELS.index(test) for test in wanted if test in LEVELS), default=len(LEVELS))
    return [*wanted, *(test for test in LEVELS[lowest:] if test not in wanted)]


def covers(test: str, rule: str, xid: int | None) -> bool:
    """Returns whether a pass of this test validates a node after the fault."""
    return test in needed_tests(rule, xid)


def choose_test(rule: str, xid: int | None, *, with_image: Collection[str]) -> str:
    """Returns the key of the test for a fault. `with_image`: keys of tests whose image is set."""
    return next((test for test in needed_tests(rule, xid) if test in with_image), USUAL[0])
