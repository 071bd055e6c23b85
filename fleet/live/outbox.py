"""Unsent messages of a browser. A slow browser gets the newest state, not the backlog. Pure."""

from fleet.messages.announce import TOO_MANY_NODES, Message


class Outbox:
    """One waiting message per key; a second one is merged into it."""

    def __init__(self) -> None:
        self._waiting: dict[str, Message] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, key: str, message: Message) -> None:
        earlier = self._waiting.get(key)
        self._waiting[key] = merge_changes(earlier, message) if earlier else message

    def replace(self, key: str, message: Message) -> None:
        """Replaces the message of a key; for messages that contain the whole state."""
        self._waiting[key] = message

    def take(self) -> list[Message]:
        taken, self._waiting = list(self._waiting.values()), {}
        return taken


def merge_changes(earlier: Message, later: Message) -> Message:
    """Merges two changes: the later number, the earlier predecessor, and the nodes of both with their later state.

    If a message between them was lost, the merge keeps the later predecessor, so that the page notices the gap.
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
