"""Whole numbers from Kubernetes quantities. Pure.

Grammar: kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity. Extended resources are whole
numbers, but may have a suffix.
"""

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

WRITTEN = re.compile(r"^([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?$", re.ASCII)
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
DECIMAL = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
LONGEST = 64  # characters; no real quantity is longer
MOST = 2**63 - 1  # the API server caps quantities here
FURTHEST = 99  # larger exponents make no difference


def whole_quantity(quantity: str | float | None) -> int | None:
    """Returns the quantity rounded down, from 0 to `MOST`. None: missing or unreadable."""
    text = str(quantity) if quantity is not None else ""
    match = WRITTEN.match(text) if len(text) <= LONGEST else None
    if match is None:
        return None
    number, suffix = match.groups()
    if suffix is None and number.isdigit():
        return min(int(number), MOST)
    if suffix and suffix[0] in "eE" and suffix not in ("E", "Ei"):
        return _clamp(float(number + suffix))
    return _clamp(float(number) * BINARY.get(suffix or "", DECIMAL.get(suffix or "", 1)))


@lru_cache(maxsize=4096)  # the pods of a fleet request few different amounts
def rounded_up(quantity: str | float, scale: int = 1) -> int | None:
    """Returns the quantity times `scale`, rounded up, from 0 to `MOST`. None: unreadable.

    Kubernetes rounds CPU up in thousandths and memory in bytes (MilliValue and Value of
    k8s.io/apimachinery/pkg/api/resource/quantity.go).
    """
    text = str(quantity)
    match = WRITTEN.match(text) if len(text) <= LONGEST else None
    if match is None:
        return None
    number, suffix = match.groups()
    amount = Decimal(number) * _factor(suffix or "") * scale
    return MOST if amount >= MOST else max(0, int(amount.to_integral_value(ROUND_CEILING)))


def _factor(suffix: str) -> Decimal:
    if suffix[:1] in ("e", "E") and suffix not in ("E", "Ei"):
        return Decimal(10) ** max(-FURTHEST, min(FURTHEST, int(suffix[1:])))
    return Decimal(BINARY.get(suffix) or repr(DECIMAL.get(suffix, 1)))


def _clamp(number: float) -> int:
    return MOST if number >= MOST else int(max(0.0, number))
