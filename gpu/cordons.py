"""Whose a cordon is, as far as the cluster says it: the field manager that the API server kept, and NVSentinel's label.

Who takes a cordon off is kept nowhere. A field manager is a client, and no person: `kubectl` is whoever uses it.
"""

from collections.abc import Mapping

from gpu.labels import SENTINEL_CORDON


def whose_cordon(manager: str, labels: Mapping[str, str]) -> str:
    """As a sentence goes on after *Cordoned*. `manager`: blank where the API server says none."""
    marked = f"the label {SENTINEL_CORDON} says {labels[SENTINEL_CORDON]}" if labels.get(SENTINEL_CORDON) else ""
    if manager:
        return f" by {manager}, as the API server has it{f'; {marked}' if marked else ''}"
    return f": {marked}" if marked else "; the API server does not say by whom"
