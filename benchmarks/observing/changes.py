"""How late a node's change is named to a browser: alone, and while many change before many browsers."""

import threading
import time
from itertools import islice

from benchmarks.observing.api import Api
from benchmarks.observing.ear import Ear

LATEST_S = 60.0  # what is late is a figure, not an end of the bench
APART_S = 0.4  # past the pause between two flushes


def alone(api: Api, ear: Ear, ids: dict[str, int], *, changes: int) -> list[float]:
    """Milliseconds from the API server's answer to the message, one change after the other."""
    late = []
    names = list(ids)
    for number in range(changes):
        name = names[number * 37 % len(names)]
        sent = time.perf_counter()
        done = api.label(name, f"alone-{time.time_ns()}")
        heard = ear.wait_for(ids[name], after=sent, timeout_s=LATEST_S)
        late.append(max(0.0, heard - done) * 1000)
        time.sleep(APART_S)
    return late


def storm(api: Api, ear: Ear, ids: dict[str, int], *, per_s: float, for_s: float) -> list[float]:
    """The same for changes that come at a steady rate, whether or not the ones before were heard of."""
    sent: list[tuple[int, float, float]] = []
    sender = threading.Thread(target=_send, args=(api, ids, sent), kwargs={"per_s": per_s, "for_s": for_s})
    sender.start()
    late, seen = [], 0
    while sender.is_alive() or seen < len(sent):
        for node_id, before, done in islice(sent, seen, None):
            late.append(max(0.0, ear.wait_for(node_id, after=before, timeout_s=LATEST_S) - done) * 1000)
            seen += 1
        time.sleep(0.01)
    sender.join()
    if len(late) < 0.9 * per_s * for_s:
        raise RuntimeError(
            f"only {len(late)} changes in {for_s:.0f} s: the machine is too busy for {per_s:.0f} a second"
        )
    return late


def _send(api: Api, ids: dict[str, int], sent: list[tuple[int, float, float]], *, per_s: float, for_s: float) -> None:
    began = time.perf_counter()
    names = list(ids)
    for number in range(int(per_s * for_s)):
        time.sleep(max(0.0, began + number / per_s - time.perf_counter()))
        name = names[number % len(names)]
        before = time.perf_counter()
        sent.append((ids[name], before, api.label(name, f"storm-{time.time_ns()}")))
