"""How long a test waits for a fact at most. It is long: what it waits for costs nothing where the machine is fast."""

import threading

from edges.background import Background

PATIENCE_S = 180.0
PATIENCE_MS = PATIENCE_S * 1000


def get_through(background: Background) -> None:
    """Wait until all is sent that was handed over, by whichever test: what one hears next is its own."""
    is_through = threading.Event()
    background.send(is_through.set)
    assert is_through.wait(PATIENCE_S)
