"""The rules for a combination: one small file per question, in this table."""

from collections.abc import Callable, Iterable

from gpu.compatibility.case import Case
from gpu.compatibility.rules import (
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

RULES: dict[str, Callable[[Case], Iterable[Verdict]]] = {
    known_bad.RULE: known_bad.evaluate,
    operator.RULE: operator.evaluate,
    platform.RULE: platform.evaluate,
    runtime.RULE: runtime.evaluate,
    support_windows.RULE: support_windows.evaluate,
    skew.RULE: skew.evaluate,
    driver.RULE: driver.evaluate,
    minimum_versions.RULE: minimum_versions.evaluate,
    precompiled.RULE: precompiled.evaluate,
    kernels.RULE: kernels.evaluate,
    operands.RULE: operands.evaluate,
    cuda.RULE: cuda.evaluate,
}
