"""The judges of a combination: one small file per question, in this table."""

from collections.abc import Callable, Iterable

from gpu.compatibility.case import Case
from gpu.compatibility.judges import (
    cuda,
    driver,
    kernels,
    known_bad,
    minimum_versions,
    operands,
    operator,
    platform,
    precompiled,
    runtime,
    skew,
    support_windows,
)
from gpu.compatibility.verdicts import Verdict

JUDGES: dict[str, Callable[[Case], Iterable[Verdict]]] = {
    known_bad.RULE: known_bad.judge,
    operator.RULE: operator.judge,
    platform.RULE: platform.judge,
    runtime.RULE: runtime.judge,
    support_windows.RULE: support_windows.judge,
    skew.RULE: skew.judge,
    driver.RULE: driver.judge,
    minimum_versions.RULE: minimum_versions.judge,
    precompiled.RULE: precompiled.judge,
    kernels.RULE: kernels.judge,
    operands.RULE: operands.judge,
    cuda.RULE: cuda.judge,
}
