"""Whole numbers out of Kubernetes quantities. Pure.

Grammar: kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity. Extended resources are whole numbers,
but may be written with a suffix.
"""

import re

WRITTEN = re.compile(r"^([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|m|k|M|G|T|P|E|[eE][+-]?\d+)?$")
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
DECIMAL = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}


def whole(quantity: str | float | None) -> int | None:
    """The quantity rounded down to a whole number, not below 0. None: it is none, or cannot be read."""
    found = WRITTEN.match(str(quantity)) if quantity is not None else None
    if found is None:
        return None
    number, suffix = found.groups()
    if suffix and suffix[0] in "eE" and suffix != "E" and suffix != "Ei":
        return max(0, int(float(number + suffix)))
    return max(0, int(float(number) * BINARY.get(suffix or "", DECIMAL.get(suffix or "", 1))))
