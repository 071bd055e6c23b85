import asyncio


class Closing:
    """The end of the server, told to every stream that waits for something else."""

    def __init__(self) -> None:
        self.is_near = False
        self._waiting: set[asyncio.Event] = set()

    def join(self, stirred: asyncio.Event) -> None:
        self._waiting.add(stirred)

    def leave(self, stirred: asyncio.Event) -> None:
        self._waiting.discard(stirred)

    def announce(self) -> None:
        self.is_near = True
        for stirred in self._waiting:
            stirred.set()
