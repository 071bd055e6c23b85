"""What containers wrote before they died: a pod's status does not say it, its log does."""

from collections import OrderedDict
from collections.abc import Sequence

REMEMBERED = 4096  # containers


class Journal:
    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, str], tuple[str, ...]] = OrderedDict()

    def note(self, pod_uid: str, container: str, lines: Sequence[str]) -> None:
        self._last.pop((pod_uid, container), None)
        self._last[pod_uid, container] = tuple(lines)
        if len(self._last) > REMEMBERED:
            self._last.popitem(last=False)

    def last_run(self, pod_uid: str, container: str) -> tuple[str, ...]:
        """Empty: it has not died, or has died without a word."""
        return self._last.get((pod_uid, container), ())
