from collections.abc import Iterator
from datetime import datetime, timedelta
from ipaddress import ip_network

import pytest

from notifications.models import Channel
from notifications.models.router import KEY
from notifications.rounds.channel_round import run_channel
from notifications.rounds.router_round import run_router
from tests.make import NOON
from tests.notifications.make import SIGNING
from tests.notifications.receivers import Receiver, a_receiver


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def receiver(settings, monkeypatch) -> Iterator[Receiver]:
    settings.NOTIFICATION_NETWORKS = [ip_network("127.0.0.0/8")]
    monkeypatch.setenv("QUARTERDECK_CHANNEL_KEY", SIGNING)
    monkeypatch.setenv("QUARTERDECK_CHANNEL_KEY_CHANNELS", "*")
    with a_receiver() as receiver:
        yield receiver


@pytest.fixture
def route_and_send(clock):
    """Run the router, then every channel, as a worker would."""

    def run(*, is_routed: bool = True) -> None:
        if is_routed:
            run_router(KEY, owner="worker-1", clock=clock)
        for channel in Channel.objects.all():
            run_channel(channel.pk, owner="worker-1", clock=clock)

    return run
