"""A raw WebSocket client that notes when each node was last named."""

import json
import threading
import time

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

TOPIC = "/live/?topics=fleet"


class Ear:
    def __init__(self, socket: ClientConnection) -> None:
        self.named_at: dict[int, float] = {}
        self._socket = socket
        self._heard = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def wait_for(self, node_id: int, *, after: float, timeout_s: float) -> float:
        """When the node was named, later than `after`."""
        with self._heard:
            if not self._heard.wait_for(lambda: self.named_at.get(node_id, 0.0) > after, timeout_s):
                raise TimeoutError(f"nothing was heard of node {node_id} for {timeout_s:.0f} s")
            return self.named_at[node_id]

    def _listen(self) -> None:
        try:
            for message in self._socket:
                self._note(json.loads(message), time.perf_counter())
        except ConnectionClosed:
            return  # the bench is over; one that is not times out and says so

    def _note(self, message: dict, now: float) -> None:
        with self._heard:
            for node_id, *_ in message.get("nodes", []):
                self.named_at[node_id] = now
            self._heard.notify_all()
