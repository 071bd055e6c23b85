"""List, then watch, one kind into its cache; a lost watch is an ordinary restart."""

import logging
import threading

from simulator.actors.cache import Cache
from simulator.actors.cluster import Cluster, Stream
from simulator.actors.loop import Loop
from simulator.kinds import Kind
from simulator.refusals import Refused

log = logging.getLogger(__name__)

PAUSE_S = 1.0


class Mirror:
    def __init__(self, cluster: Cluster, kind: Kind, cache: Cache) -> None:
        self._cluster = cluster
        self._kind = kind
        self._cache = cache
        self._since = ""
        self._stream: Stream | None = None
        self._is_stopping = threading.Event()

    def fill(self) -> None:
        """List into the cache, in the thread of the loop."""
        listed, self._since = self._cluster.list(self._kind)
        self._cache.replace(listed)

    def pump(self) -> bool:
        """For a loop without threads: take what has happened. False when nothing has."""
        if self._stream is None:
            self._stream = self._cluster.watch(self._kind, since=self._since)
        changes = self._stream.take(0)
        for event, obj in changes:
            self._cache.take(event, obj)
        return bool(changes)

    def start(self, loop: Loop) -> None:
        threading.Thread(target=self._follow, args=(loop,), name=f"watch-{self._kind.plural}", daemon=True).start()

    def stop(self) -> None:
        self._is_stopping.set()
        if self._stream:
            self._stream.close()

    def _follow(self, loop: Loop) -> None:
        while not self._is_stopping.is_set():
            try:
                self._watch_once(loop)
            except (Refused, OSError) as error:
                self._list_again(loop, error)

    def _watch_once(self, loop: Loop) -> None:
        self._stream = stream = self._cluster.watch(self._kind, since=self._since)
        while not stream.is_closed and not self._is_stopping.is_set():
            for event, obj in stream.take(None):
                self._since = obj["metadata"]["resourceVersion"]
                if event != "BOOKMARK":
                    loop.post(self._cache.take, event, obj)

    def _list_again(self, loop: Loop, error: Exception) -> None:
        if self._is_stopping.wait(PAUSE_S):
            return
        log.info("watch of %s restarts: %s", self._kind.plural, error)
        try:
            listed, self._since = self._cluster.list(self._kind)
        except (Refused, OSError) as again:
            log.info("list of %s failed: %s", self._kind.plural, again)
            return
        loop.post(self._cache.replace, listed)
