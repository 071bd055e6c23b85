"""Events that were heard before the object they are about: two watches keep no order between them."""

from collections import OrderedDict

from kube.structs.events import EventSeen

MOST = 1000  # objects; what nobody claims is pushed out, since most events are about nothing that we keep
OF_ONE = 20


class Early:
    def __init__(self) -> None:
        self._waiting: OrderedDict[str, list[EventSeen]] = OrderedDict()

    def keep(self, seen: EventSeen) -> None:
        uid = seen.about.uid
        if not uid:
            return
        waiting = self._waiting.setdefault(uid, [])
        waiting.append(seen)
        del waiting[:-OF_ONE]
        while len(self._waiting) > MOST:
            self._waiting.popitem(last=False)

    def claim(self, uid: str) -> list[EventSeen]:
        """Those about this object, once."""
        return self._waiting.pop(uid, [])
