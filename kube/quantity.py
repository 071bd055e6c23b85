"""Whole numbers out of Kubernetes quantities. Pure.

Grammar: kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity. Extended resources are whole numbers,
but may be written with a suffix.
"""

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

WRITTEN = re.compile(r"^([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?$", re.ASCII)
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
DECIMAL = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
LONGEST = 64  # characters; a longer number is nobody's
MOST = 2**63 - 1  # of a quantity, as the API server caps it
FURTHEST = 99  # of exponents that make a difference


def whole(quantity: str | float | None) -> int | None:
    """The quantity rounded down to a whole number, from 0 to `MOST`. None: it is none, or cannot be read."""
    text = str(quantity) if quantity is not None else ""
    found = WRITTEN.match(text) if len(text) <= LONGEST else None
    if found is None:
        return None
    number, suffix = found.groups()
    if suffix is None and number.isdigit():
        return min(int(number), MOST)
    if suffix and suffix[0] in "eE" and suffix not in ("E", "Ei"):
        return _within(float(number + suffix))
    return _within(float(number) * BINARY.get(suffix or "", DECIMAL.get(suffix or "", 1)))


@lru_cache(maxsize=4096)  # the pods of a fleet ask for few different amounts
def rounded_up(quantity: str | float, scale: int = 1) -> int | None:
    """The quantity times `scale`, rounded up, from 0 to `MOST`. None: it cannot be read.

    CPU is counted in thousandths and memory in bytes, both rounded up (MilliValue and Value of
    k8s.io/apimachinery/pkg/api/resource/quantity.go).
    """
    text = str(quantity)
    found = WRITTEN.match(text) if len(text) <= LONGEST else None
    if found is None:
        return None
    number, suffix = found.groups()
    wanted = Decimal(number) * _factor(suffix or "") * scale
    return MOST if wanted >= MOST else max(0, int(wanted.to_integral_value(ROUND_CEILING)))


def _factor(suffix: str) -> Decimal:
    if suffix[:1] in ("e", "E") and suffix not in ("E", "Ei"):
        return Decimal(10) ** max(-FURTHEST, min(FURTHEST, int(suffix[1:])))
    return Decimal(BINARY.get(suffix) or repr(DECIMAL.get(suffix, 1)))


def _within(number: float) -> int:
    return MOST if number >= MOST else int(max(0.0, number))
