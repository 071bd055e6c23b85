"""Tells browsers that a cluster has newer telemetry. They fetch the values that they may see.

One message a round, however many GPUs: a round is every 15 s at most, of exporters every 30 s.
"""

from datetime import datetime

from fleet.messages import announce

TELEMETRY_GROUP = "telemetry"


def telemetry_group(cluster_id: int) -> str:
    return f"telemetry-{cluster_id}"


def number_of(at: datetime) -> int:
    """Returns the number of a round: its answer time in milliseconds since the epoch."""
    return int(at.timestamp() * 1000)


def telemetry_changed(cluster_id: int, *, at: datetime) -> None:
    """Notifies browsers. `at` is the answer time of the round, as in its row."""
    topic = telemetry_group(cluster_id)
    message = {"type": "topic.changed", "topic": topic, "keys": [topic], "seq": number_of(at)}
    announce.send((topic, TELEMETRY_GROUP), message)
