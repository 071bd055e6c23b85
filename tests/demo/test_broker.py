"""What the settings say of the broker, held against a real one that goes away."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from django.conf import settings
from kombu import Connection, Consumer, Exchange, Queue

from demo import valkey

NUDGES = Queue("nudges")
CONTROL = Queue("control", exchange=Exchange("control", type="fanout"), auto_delete=True)  # as each worker has one


def test_a_broker_that_goes_away_ends_no_worker_that_holds_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As a worker does: it waits for the next message, loses the broker, gives up the connection and closes it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where kombu leaves what it could not give back
    child, url = valkey.start(tmp_path / "v", log=tmp_path / "log", env=os.environ)
    address = url.replace("unix://", "redis+socket://", 1)
    connection = Connection(address, transport_options=settings.CELERY_BROKER_TRANSPORT_OPTIONS)
    connection.SimpleQueue(NUDGES.name).put("a plan")
    taken: list[str] = []

    Consumer(connection.default_channel, [NUDGES, CONTROL], callbacks=[lambda body, _: taken.append(body)]).consume()
    with suppress(TimeoutError):
        while True:
            connection.drain_events(timeout=0.5)
    child.stop()
    connection.collect()
    connection.close()

    assert taken == ["a plan"]
    assert not connection.connected
