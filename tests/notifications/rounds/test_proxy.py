"""Messages by an HTTP proxy, where names of the internet cannot be looked up."""

import pytest

from notifications.commands.channels import add_channel
from notifications.commands.refusals import BadChannel
from notifications.models import Delivery
from tests.make import NOON, a_cluster, a_finding
from tests.notifications.make import catch_all, happened
from tests.notifications.receivers import a_receiver

pytestmark = pytest.mark.django_db


@pytest.fixture
def proxy(settings):
    with a_receiver() as proxy:
        settings.NOTIFICATION_PROXY = proxy.url
        yield proxy


@pytest.fixture
def send(receiver, route_and_send):
    def send(address: str) -> Delivery:
        given = {"address": address, "secret_from": "env:QUARTERDECK_CHANNEL_KEY"}
        catch_all(add_channel("ops", actor="ada", now=NOON, kind="webhook", **given))
        happened(a_finding(a_cluster("eu-1")))
        route_and_send()
        return Delivery.objects.get()

    return send


def test_a_receiver_outside_is_reached_by_the_proxy(proxy, send):
    sent = send("https://hooks.example.invalid/hook")
    assert "501" in sent.sentence  # this proxy knows no CONNECT, which it was asked for

    assert proxy.received == []


def test_the_proxy_gets_the_name_and_looks_it_up(proxy, send):
    assert send("http://hooks.example.invalid/hook").state == "sent"

    assert [each.path for each in proxy.received] == ["http://hooks.example.invalid/hook"]


def test_a_receiver_in_an_allowed_network_is_reached_directly(proxy, receiver, send):
    assert send(f"{receiver.url}/hook").state == "sent"

    assert (len(receiver.received), proxy.received) == (1, [])


def test_a_forbidden_address_stays_forbidden(proxy, send):
    with pytest.raises(BadChannel, match=r"169\.254\.169\.254"):
        send("http://169.254.169.254/latest")
