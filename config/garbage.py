"""How often Python looks for cycles.

A list is read, and a page made, of a hundred thousand small objects, hardly one of them in a cycle. To look through
them at every 700th new one, as Python does by itself, took 13 % of the CPU time of the first list of 5,000 nodes; and
to look through all that a process holds, as it does now and then, made a page wait for a tenth of a second. While the
modules of a worker are imported, nothing of which ever goes, it took a tenth of the time.
"""

import gc

NEW_OBJECTS, YOUNG, OLD = 50_000, 20, 50


def look_rarely() -> None:
    """From the first import on."""
    gc.set_threshold(NEW_OBJECTS, YOUNG, OLD)


def collect_rarely() -> None:
    """What is there by now stays: it is never looked through again."""
    gc.collect()
    gc.freeze()
    look_rarely()
