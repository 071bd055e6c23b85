"""How long a test waits for a fact at most. It is long: what it waits for costs nothing where the machine is fast."""

import threading
import time

from edges.background import Background

PATIENCE_S = 180.0
PATIENCE_MS = PATIENCE_S * 1000


def get_through(background: Background) -> None:
    """Wait until all is sent that was handed over, by whichever test: what one hears next is its own."""
    is_through = threading.Event()
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        background.send(is_through.set)  # again: a full queue drops it
        if is_through.wait(0.2):
            return
    raise AssertionError("what was handed over is still not sent")
