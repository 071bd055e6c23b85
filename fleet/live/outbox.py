"""What a browser has not been sent yet. A slow one gets the newest state, not the backlog. Pure."""

from fleet.messages.announce import TOO_MANY_NODES, Message


class Outbox:
    """One waiting message a key: a second one is folded into the first."""

    def __init__(self) -> None:
        self._waiting: dict[str, Message] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, key: str, message: Message) -> None:
        earlier = self._waiting.get(key)
        self._waiting[key] = fold(earlier, message) if earlier else message

    def replace(self, key: str, message: Message) -> None:
        """For what says the whole each time."""
        self._waiting[key] = message

    def take(self) -> list[Message]:
        taken, self._waiting = list(self._waiting.values()), {}
        return taken


def fold(earlier: Message, later: Message) -> Message:
    """Both changes as one: the later's number, the earlier's predecessor, the nodes of both with their later state.

    Where one between them was lost, folding would hide it: the page is told the later's predecessor, and fetches.
    """
    folded = {**later}
    has_gap = "prev" in earlier and later.get("prev", 0) > earlier["seq"]
    if "prev" in earlier and not has_gap:
        folded["prev"] = min(earlier["prev"], later.get("prev", earlier["prev"]))
    folded["seq"] = max(earlier["seq"], later["seq"])
    if "kinds" in earlier or "kinds" in later:
        folded["kinds"] = sorted({*earlier.get("kinds", ()), *later.get("kinds", ())})
    if earlier.get("index"):
        folded["index"] = True
    if "nodes" not in earlier and "nodes" not in later:
        return folded
    nodes = {node[0]: node for node in (*earlier.get("nodes", ()), *later.get("nodes", ()))}
    is_all = has_gap or earlier.get("all") or later.get("all") or len(nodes) > TOO_MANY_NODES
    folded["nodes"] = [] if is_all else list(nodes.values())
    if is_all:
        folded["all"] = True
    return folded
