import pytest
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from config.checks import proxies as check_proxies
from people.sign_in.addresses import client_address


def address(peer: str, said: str | None = None) -> str:
    headers = {} if said is None else {"X-Forwarded-For": said}
    return client_address(RequestFactory(REMOTE_ADDR=peer).get("/", headers=headers))


@pytest.mark.parametrize(
    ("ours", "peer", "said", "found"),
    [
        ("0", "10.0.0.1", "192.0.2.1", "10.0.0.1"),
        ("", "10.0.0.1", "192.0.2.1", "10.0.0.1"),
        ("1", "10.0.0.1", "192.0.2.9, 192.0.2.1", "192.0.2.1"),
        ("2", "10.0.0.1", "192.0.2.9, 192.0.2.1", "192.0.2.9"),
        ("9", "10.0.0.1", "192.0.2.9, 192.0.2.1", "192.0.2.9"),
        ("1", "10.0.0.1", None, "10.0.0.1"),
        ("10.0.0.0/8", "10.0.0.1", "192.0.2.9, 192.0.2.1", "192.0.2.1"),
        ("10.0.0.0/8", "10.0.0.1", "192.0.2.9, 192.0.2.1, 10.0.0.7", "192.0.2.1"),
        ("10.0.0.0/8", "198.51.100.7", "192.0.2.1", "198.51.100.7"),
        ("10.0.0.1,127.0.0.1", "127.0.0.1", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.1"),
        ("0", "2001:db8:1:2:3::4", None, "2001:db8:1:2::/64"),
        ("0", "::ffff:192.0.2.1", None, "192.0.2.1"),
        ("1", "10.0.0.1", "203.0.113.9:51234", "203.0.113.9"),
        ("1", "10.0.0.1", "[2001:db8:1:2:3::4]:51234", "2001:db8:1:2::/64"),
        ("1", "10.0.0.1", "[2001:db8:1:2:3::4]", "2001:db8:1:2::/64"),
        ("10.0.0.0/8", "10.0.0.1", "192.0.2.1:7, 10.0.0.7:443", "192.0.2.1"),
        ("10.0.0.1", "10.0.0.1", "rubbish", "10.0.0.1"),
        ("1", "10.0.0.1", "unknown", "10.0.0.1"),
        ("1", "10.0.0.1", "203.0.113.9:", "10.0.0.1"),
    ],
)
def test_only_our_proxies_are_believed(settings, ours, peer, said, found):
    settings.QUARTERDECK_PROXIES = ours

    assert address(peer, said) == found


@given(said=st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=200))
def test_without_proxies_no_header_moves_an_address(said: str):
    assert address("10.0.0.1", said) == "10.0.0.1"


@pytest.mark.parametrize("ours", ["loadbalancer", "10.0.0.0/99", "1,x"])
def test_what_cannot_be_read_fails_at_boot(settings, ours):
    settings.QUARTERDECK_PROXIES = ours

    assert [message.id for message in check_proxies()] == ["qd.E006"]
