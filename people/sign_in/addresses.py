"""From where a request comes: the address that is counted by whoever may not be able to choose it.

`X-Forwarded-For` is believed only where QUARTERDECK_PROXIES says that a proxy of ours writes it: the addresses or
networks of those proxies, or how many of them there are in front, whatever their addresses.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

Networks = tuple[IPv4Network | IPv6Network, ...]
MOST_HOPS = 20
WITH_PORT = re.compile(r"\[([^\]]+)\](?::[0-9]{1,5})?|([0-9.]+):[0-9]{1,5}")  # [2001:db8::1]:443, 192.0.2.1:443
OF_ONE_SITE = 64  # bits: whoever has one address of IPv6 has as many as they like


def client_address(request: HttpRequest) -> str:
    return _grouped(_named(request.META.get("REMOTE_ADDR", ""), _hops(request), proxies(settings.QUARTERDECK_PROXIES)))


@lru_cache(maxsize=4)
def proxies(written: str) -> int | Networks:
    """:raises ValueError: when it is neither a number nor addresses with commas"""
    written = written.strip()
    if written.isascii() and written.isdigit():
        return int(written)
    return tuple(ip_network(each.strip(), strict=False) for each in written.split(",") if each.strip())


def _named(peer: str, hops: list[str], ours: int | Networks) -> str:
    """The last address that something of ours has seen with its own eyes. The peer, where that is none."""
    if isinstance(ours, int):
        return (hops[-min(ours, len(hops))] if ours and hops else "") or peer
    seen = peer
    for hop in reversed(hops):
        if not _is_of(seen, ours):
            break
        seen = hop
    return seen or peer


def _hops(request: HttpRequest) -> list[str]:
    said = request.META.get("HTTP_X_FORWARDED_FOR", "").rsplit(",", MOST_HOPS)[-MOST_HOPS:]
    return [_without_port(hop.strip()[:64]) for hop in said if hop.strip()]


def _without_port(hop: str) -> str:
    """Blank: it is no address, and whoever wrote it could write another each time."""
    found = WITH_PORT.fullmatch(hop)
    try:
        return str(ip_address((found[1] or found[2]) if found else hop))
    except ValueError:
        return ""


def _is_of(address: str, networks: Networks) -> bool:
    try:
        return any(ip_address(address) in network for network in networks)
    except ValueError:
        return False


def _grouped(address: str) -> str:
    try:
        read = ip_address(address)
    except ValueError:
        return address
    if isinstance(read, IPv6Address) and read.ipv4_mapped is None:
        return str(ip_network((read, OF_ONE_SITE), strict=False))
    return str(getattr(read, "ipv4_mapped", None) or read)
