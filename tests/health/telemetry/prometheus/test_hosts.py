"""Which hosts are never asked, judged by every address that a name has, before anything is sent: Z39."""

import socket
import time
from threading import Event

import pytest

from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.client import Address, Bounds, Client
from health.telemetry.prometheus.hosts import check_host

NO_SERVERS = [
    "169.254.169.254", "169.254.170.2", "169.254.42.42", "0.0.0.1", "0.255.2.3", "192.0.0.8", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "0", "[::]", "[fe80::1]", "[fe80::a9fe:a9fe]", "[febf::1]", "[fec0::1]", "[ff02::1]", "[100::1]",
    # An IPv4 address in an IPv6 one: mapped, compatible, translated, through NAT64, 6to4 and Teredo (its server, and
    # its client with every bit turned: RFC 4380, 4).
    "[::ffff:169.254.169.254]", "[::169.254.169.254]", "[::ffff:0:169.254.169.254]", "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::a9fe:a9fe]", "[2002:a9fe:a9fe::1]", "[2002:a9fe:a9fe:ffff::]", "[2001:0:a9fe:a9fe::]",
    "[2001:0:c000:201:0:0:5601:5601]",
]  # fmt: skip
OF_CLOUDS = [
    ("[fd00:ec2::254]", "AWS"), ("[fd00:ec2::23]", "AWS"), ("168.63.129.16", "Azure"),
    ("[fd20:ce::254]", "Google Cloud"), ("100.100.100.200", "Alibaba Cloud"), ("[fd00:100::100:200]", "Alibaba Cloud"),
    ("192.0.0.192", "Oracle Cloud"), ("[fd00:c1::a9fe:a9fe]", "Oracle Cloud"), ("[fd00:42::42]", "Scaleway"),
    ("[fd00:a9fe:a9fe::1]", "Akamai"), ("[::ffff:168.63.129.16]", "Azure"), ("[64:ff9b::6464:64c8]", "Alibaba Cloud"),
    ("[2002:a83f:8110::]", "Azure"),
]  # fmt: skip
LOOPBACK = ["127.0.0.1:9090", "127.9.9.9", "[::1]:9090", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"]
ASKED = [
    "10.0.0.1", "100.64.0.1", "100.100.100.201", "168.63.129.17", "172.16.0.1", "192.168.0.1", "192.0.2.1", "8.8.8.8",
    "[2001:db8::1]", "[2001:4860::1]", "[fd12:3456::1]", "[fd20:ce::253]", "[64:ff9b::808:808]", "[::ffff:10.0.0.1]",
    "[2002:808:808::1]",
]  # fmt: skip


def refusal(url: str) -> str:
    with pytest.raises(Unusable) as refused:
        check_host(url, may_be_loopback=False)
    return str(refused.value)


@pytest.mark.parametrize("host", NO_SERVERS)
def test_asks_no_address_that_no_server_has(host):
    assert "which cannot be a server" in refusal(f"http://{host}/latest/meta-data")


@pytest.mark.parametrize(("host", "whose"), OF_CLOUDS)
def test_asks_no_service_of_a_cloud_for_its_own_machines(host, whose):
    assert f"a metadata service of {whose}" in refusal(f"http://{host}/")


@pytest.mark.parametrize("host", LOOPBACK)
def test_asks_this_machine_only_where_a_setting_allows_it(host):
    assert "The address is this host itself" in refusal(f"http://{host}/")
    assert check_host(f"http://{host}/", may_be_loopback=True)


@pytest.mark.parametrize("host", NO_SERVERS + [host for host, _ in OF_CLOUDS])
def test_what_a_demo_is_allowed_is_this_machine_and_no_more(host):
    with pytest.raises(Unusable):
        check_host(f"http://{host}/", may_be_loopback=True)


@pytest.mark.parametrize("host", ASKED)
def test_asks_whatever_else_there_is(host):
    assert check_host(f"http://{host}/", may_be_loopback=False) == [host.strip("[]")]


@pytest.mark.parametrize("spelt", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.16689662"])
def test_an_address_may_be_spelt_as_it_likes(spelt):
    assert "which cannot be a server" in refusal(f"http://{spelt}/")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://example.org", "The address must begin with http:// or https:// and have a host"),
        ("example.org:9090", "The address must begin with http:// or https:// and have a host"),
        ("http://", "have a host"),
        ("http://[::1", "The address cannot be parsed"),
        ("http://example.org:99999", "The address cannot be parsed"),
        ("http://ada:secret@192.0.2.1", "The address must not contain a user, password, ? or #"),
        ("http://192.0.2.1/?x=1", "The address must not contain a user, password, ? or #"),
        ("http://nowhere.invalid", "cannot be resolved"),
        ("http://a\0b", "cannot be resolved"),
        (f"http://{'a' * 64}.example", "cannot be resolved"),
    ],
)
def test_says_what_is_wrong_with_an_address(url, said):
    assert said in refusal(url)


def test_waits_no_longer_for_a_name_than_for_an_answer(monkeypatch):
    """A name server that says nothing costs half a minute, and whoever asks meanwhile waits on a page."""
    is_over = Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: is_over.wait(10) and [])
    began = time.monotonic()

    with pytest.raises(Unusable, match=r"cannot be resolved: no answer within 0\.2 s"):
        Client(Address("http://prometheus.example"), Bounds(1.0, 1.0, 0.2, 1 << 20))

    is_over.set()
    assert time.monotonic() - began < 5
