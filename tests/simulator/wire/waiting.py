import time
from collections.abc import Callable

from tests.patience import PATIENCE_S


def until(is_so: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends_at, "waited in vain"
        time.sleep(0.02)
