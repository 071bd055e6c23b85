from simulator.store import Store
from simulator.wire.answers import Answer
from simulator.wire.asks import Ask


def answer(_store: Store, _ask: Ask, _path: str) -> Answer | None:
    return None
