"""Memory cleanup of the web process.

Each answer of REST framework leaves a thousand objects in cycles, such as those of a serializer and its fields. The
thresholds (`config.garbage`) let 50,000 gather, and to free these delayed a request by 50 ms. So the process collects
the youngest after each answer, which takes less than 1 ms. Under load answers outlive them: a thousand lists for fifty
clients left 350,000 objects. So it collects everything newer than its start after a number of answers.

The first answers import modules, compile queries and load templates: 150,000 objects that stay. To look through them
took 45 ms or more each time, which delayed a request. So they are frozen each time until the process is warm. A request
that runs at such a moment may leave its answer in memory.

The freed memory stays with the allocator, spread over one arena per thread. glibc returns only the end of an arena,
unless malloc_trim is called.
"""

import ctypes
import gc
import threading
from itertools import count
from typing import Any

from django.core.signals import request_finished

ANSWERS = 32
WARM_AFTER = 16 * ANSWERS  # answers; by then, pages that are seldom opened were opened too
EVERY_S = 10.0
_answers = count(1)
# other C libraries lack it
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def release_memory() -> None:
    gc.collect()
    if _trim is not None:
        _trim(0)


def collect_after_answers() -> None:
    request_finished.connect(_collect_sometimes, dispatch_uid=__name__)


def start_cleanup() -> None:
    collect_after_answers()
    threading.Thread(target=_clean_forever, name="tidying", daemon=True).start()


def _collect_sometimes(**_: Any) -> None:
    number = next(_answers)
    if number % ANSWERS:
        gc.collect(0)
    else:
        gc.collect()
        if number <= WARM_AFTER:
            gc.freeze()


def _clean_forever() -> None:
    pause = threading.Event()
    while not pause.wait(EVERY_S):
        release_memory()
