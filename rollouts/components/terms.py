"""The terms of holding and releasing, for components with and without a hold label. Pure."""

from dataclasses import dataclass

from gpu.upgrade_controller import LOOKS_AGAIN


@dataclass(frozen=True)
class HoldWords:
    """Sentences and clauses with placeholders. The defaults are for a hold by label."""

    holding_all: str = "Holding every node of the driver object before {version} is written."
    writing: str = "All nodes are held ({every}). Writing {version}."
    written: str = "{version} is written; every node of the object was held before."
    holding: str = "Holding {nodes} that should not change now."
    holding_again: str = "Holding {nodes} again."
    holding_first: str = "Holding {nodes} first."
    recalling: str = "Holding released nodes that have not begun."
    recalled: str = "Held again before it began."
    stays: str = "Held nodes stay held."  # after a halt
    begun: str = "The operator has begun: {state}."
    released: str = "The hold is gone."
    changed: str = "{loaded} is loaded."
    escaped: str = "{names} began to load the new driver although held."
    has_escaped: str = "The node began to load the new driver although it was held."
    under_way: str = LOOKS_AGAIN
    halted: str = ""  # text about a halt while nodes are changing
    all_gone: str = "All holds are removed."  # at an end
    ours_gone: str = "All holds of this plan are removed."  # where others hold some
    is_back: str = "the old version is back and {gone}"
    left: str = "{names} {stay} held with the present driver (docs/takeover.md)."
    given_up: str = "{names} changed or failed, and {stay} held."
    helps: str = "Remove the label to let the operator restore {version} (docs/takeover.md)."


BY_LABEL = HoldWords()
