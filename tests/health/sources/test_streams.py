"""The time that a connection to a receiver may take."""

import socket

import pytest

from health.sources import streams
from health.telemetry.prometheus.answers import Unusable


def test_many_dead_addresses_take_no_longer_than_two(monkeypatch):
    """The lease of an export ends after a minute; each address alone may take five seconds."""
    clock, waited = [0.0], list[float]()

    def dead(_address, timeout):
        waited.append(timeout)
        clock[0] += timeout
        raise TimeoutError("timed out")

    monkeypatch.setattr(streams.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(socket, "create_connection", dead)

    with pytest.raises(Unusable, match=r"Only 2 of 20 addresses were tried\.$"):
        streams._connected([f"192.0.2.{number}" for number in range(20)], 6514)

    assert sum(waited) == streams.CONNECTED_S
