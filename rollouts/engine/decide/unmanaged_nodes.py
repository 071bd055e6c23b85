"""Nodes that left the driver object while held: nobody drives their upgrades, and our label stays. Pure."""

from rollouts.engine.decide.acts import Decision, FreeStrays
from rollouts.engine.decide.releases import SOON
from rollouts.engine.snapshot import Snapshot
from wording.numbers import count

ABORT_FREES = "Abort ends the plan and frees every hold."  # of a plan whose driver object is gone


def free_strays(snapshot: Snapshot) -> Decision | None:
    """None: there are none.

    One that comes back has a driver pod made anew, of the newest template whether it is held or not (hazard Z4), so
    the label would keep it from nothing. One that left for another driver object stays held where that would change it
    at once: it is no node that this plan may let go to somebody else's version (hazard Z38).
    """
    strays = {node.uid: node.name for node in snapshot.strays if not node.is_of_another}
    if not strays:
        return None
    sentence = f"Letting {count(len(strays), 'node')} go that the driver object no longer selects."
    return Decision(sentence, acts=(FreeStrays(strays),), look_again_in=SOON)
