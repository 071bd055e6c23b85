"""The client address of a request, for counting tries.

`X-Forwarded-For` counts only with QUARTERDECK_PROXIES set: the addresses or networks of the proxies, or their
number.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

Networks = tuple[IPv4Network | IPv6Network, ...]
MOST_HOPS = 20
WITH_PORT = re.compile(r"\[([^\]]+)\](?::[0-9]{1,5})?|([0-9.]+):[0-9]{1,5}")  # [2001:db8::1]:443, 192.0.2.1:443
OF_ONE_SITE = 64  # prefix length in bits: one IPv6 site owns all addresses of its /64


def client_address(request: HttpRequest) -> str:
    return _grouped(
        _client_of(request.META.get("REMOTE_ADDR", ""), _hops(request), proxies(settings.QUARTERDECK_PROXIES))
    )


@lru_cache(maxsize=4)
def proxies(written: str) -> int | Networks:
    """Parses QUARTERDECK_PROXIES.

    :raises ValueError: when the text is neither a number nor a list of addresses
    """
    written = written.strip()
    if written.isascii() and written.isdigit():
        return int(written)
    return tuple(ip_network(network.strip(), strict=False) for network in written.split(",") if network.strip())


def _client_of(peer: str, hops: list[str], ours: int | Networks) -> str:
    """Returns the last address that a trusted proxy saw itself; else the peer."""
    if isinstance(ours, int):
        return (hops[-min(ours, len(hops))] if ours and hops else "") or peer
    client = peer
    for hop in reversed(hops):
        if not _is_of(client, ours):
            break
        client = hop
    return client or peer


def _hops(request: HttpRequest) -> list[str]:
    hops = request.META.get("HTTP_X_FORWARDED_FOR", "").rsplit(",", MOST_HOPS)[-MOST_HOPS:]
    return [_without_port(hop.strip()[:64]) for hop in hops if hop.strip()]


def _without_port(hop: str) -> str:
    """Returns the address without its port. Blank: not an address; a client could invent a new text for each
    request."""
    match = WITH_PORT.fullmatch(hop)
    try:
        return str(ip_address((match[1] or match[2]) if match else hop))
    except ValueError:
        return ""


def _is_of(address: str, networks: Networks) -> bool:
    try:
        return any(ip_address(address) in network for network in networks)
    except ValueError:
        return False


def _grouped(address: str) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(ip_network((parsed, OF_ONE_SITE), strict=False))
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)
