"""Controllers make pods; what an API server refuses is told on the owner and tried again, later each time."""

from collections.abc import Callable

from simulator.actors.objects import Key, Obj, key, name, namespace, uid
from simulator.actors.world import World
from simulator.kinds import POD
from simulator.refusals import Refused

FIRST_S, LONGEST_S = 1.0, 300.0
FORBIDDEN = 403


class PodMaker:
    def __init__(self, world: World, kind: str, source: str, again: Callable[[Key], None]) -> None:
        """`again` is called with the owner's key when it is time to ask anew."""
        self._world = world
        self._kind = kind
        self._source = source
        self._again = again
        self._pauses: dict[str, float] = {}
        self._waiting: set[Key] = set()
        self._complaints: dict[str, str] = {}

    def make(self, owner: Obj, pod: Obj) -> Obj | None:
        """None: it is forbidden, by a quota for one."""
        try:
            made = self._world.create(POD, pod, namespace(owner))
        except Refused as refusal:
            self.refuse(owner, refusal)
            return None
        self._pauses.pop(uid(owner), None)
        self._complaints.pop(uid(owner), None)
        self._world.events.normal(
            owner, self._kind, "SuccessfulCreate", f"Created pod: {name(made)}", source=self._source
        )
        return made

    def refuse(self, owner: Obj, refusal: Refused) -> None:
        """Tell it, and ask again later.

        :raises Refused: it is not forbidden, but impossible
        """
        words = f"Error creating: {refusal.message}"
        self._world.events.warning(owner, self._kind, "FailedCreate", words, source=self._source)
        if refusal.status != FORBIDDEN:
            raise refusal
        self._complaints[uid(owner)] = refusal.message
        self._ask_later(owner)

    def complaint(self, owner: Obj) -> str:
        """Why its last pod was refused; empty: it was not."""
        return self._complaints.get(uid(owner), "")

    def forget(self, owner: Obj) -> None:
        for told in (self._pauses, self._complaints):
            told.pop(uid(owner), None)

    def _ask_later(self, owner: Obj) -> None:
        if key(owner) in self._waiting:
            return
        pause_s = self._pauses.get(uid(owner), FIRST_S)
        self._pauses[uid(owner)] = min(pause_s * 2, LONGEST_S)
        self._waiting.add(key(owner))
        self._world.loop.later(pause_s, self._ask, key(owner))

    def _ask(self, at: Key) -> None:
        self._waiting.discard(at)
        self._again(at)
