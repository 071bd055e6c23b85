"""The questions that are asked of every combination: one small file each, in this table."""

from collections.abc import Callable, Iterable

from gpu.compatibility.case import Case
from gpu.compatibility.judges import (
    cuda,
    driver,
    floors,
    kernels,
    known_bad,
    lives,
    operands,
    operator,
    platform,
    precompiled,
    runtime,
    skew,
)
from gpu.compatibility.verdicts import Verdict

JUDGES: dict[str, Callable[[Case], Iterable[Verdict]]] = {
    known_bad.RULE: known_bad.judge,
    operator.RULE: operator.judge,
    platform.RULE: platform.judge,
    runtime.RULE: runtime.judge,
    lives.RULE: lives.judge,
    skew.RULE: skew.judge,
    driver.RULE: driver.judge,
    floors.RULE: floors.judge,
    precompiled.RULE: precompiled.judge,
    kernels.RULE: kernels.judge,
    operands.RULE: operands.judge,
    cuda.RULE: cuda.judge,
}
