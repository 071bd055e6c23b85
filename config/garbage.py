"""The thresholds of Python's cyclic garbage collector.

A list or a page creates a hundred thousand small objects, hardly any in a cycle. Python's default of every 700 new
objects took 13 % of the CPU time of the first list of 5,000 nodes. An occasional full collection delayed a page by a
tenth of a second, and took a tenth of the time while a worker imported its modules.
"""

import gc

NEW_OBJECTS, YOUNG, OLD = 50_000, 20, 50


def raise_thresholds() -> None:
    """Raises the thresholds; called before the first import."""
    gc.set_threshold(NEW_OBJECTS, YOUNG, OLD)


def freeze_collector() -> None:
    """Freezes all current objects, which are never scanned again, and raises the thresholds."""
    gc.collect()
    gc.freeze()
    raise_thresholds()
