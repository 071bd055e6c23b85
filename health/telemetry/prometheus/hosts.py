"""Hosts that may be queried. Metadata services of clouds and loopback addresses are refused.

A name is resolved once, all its addresses are checked before anything is sent, and the connection uses a checked
address. So a name that resolves differently later has no effect.
"""

import socket
from collections.abc import Collection, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from queue import Empty, SimpleQueue
from threading import Thread
from urllib.parse import urlsplit

from health.telemetry.prometheus.answers import Unusable

LOOK_UP_S = 5.0  # for the name lookup, while a person waits for the form
NEARBY_S = 1.0  # a name server that knows an allowed network answers sooner
IPAddress = IPv4Address | IPv6Address
AllowedNetworks = Collection[IPv4Network | IPv6Network]

# Where clouds serve an instance its credentials, beside the link-local addresses (169.254.0.0/16, fe80::/10) that are
# refused altogether: most clouds serve at 169.254.169.254.
OF_CLOUDS: dict[str, str] = {
    # docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html: ::254; the others of its services:
    # docs.aws.amazon.com/whitepapers/latest/ipv6-on-aws/supporting-amazon-vpc-services.html: ::253, ::123
    "fd00:ec2::/32": "AWS",
    # learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
    "168.63.129.16/32": "Azure",
    # cloud.google.com/compute/docs/metadata/querying-metadata
    "fd20:ce::254/128": "Google Cloud",
    # alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata; cloud-init, sources/DataSourceAliYun.py
    "100.100.100.200/32": "Alibaba Cloud",
    "fd00:100::100:200/128": "Alibaba Cloud",
    # docs.oracle.com/en/cloud/cloud-at-customer/occ-get-started/retrieve-predefined-instance-metadata.html
    "192.0.0.192/32": "Oracle Cloud",
    # github.com/oracle/oci-python-sdk, auth/signers/instance_principals_security_token_signer.py
    "fd00:c1::a9fe:a9fe/128": "Oracle Cloud",
    # docs.cloud-init.io/en/latest/reference/datasources/scaleway.html and …/akamai.html
    "fd00:42::42/128": "Scaleway",
    "fd00:a9fe:a9fe::1/128": "Akamai",
}
# Addresses that no server has, in addition to Python's: RFC 1122, 3.2.1.3 (this host); RFC 6890, 2.2.2 (IETF
# protocols); RFC 3879 (site-local).
NO_SERVERS = ("0.0.0.0/8", "192.0.0.0/24", "fec0::/10")
NAT64 = ip_network("64:ff9b::/96")  # RFC 6052, 2.1

_OF_CLOUDS: dict[IPv4Network | IPv6Network, str] = {ip_network(text): whose for text, whose in OF_CLOUDS.items()}
_NO_SERVERS = tuple(ip_network(text) for text in NO_SERVERS)


def check_host(
    url: str,
    *,
    may_be_loopback: bool,
    private_in: AllowedNetworks | None = None,
    within_s: float = LOOK_UP_S,
    proxy_looks_up: bool = False,
) -> list[str]:
    """Returns the allowed addresses in the name server's order. `within_s` limits the lookup.

    `private_in` are the networks whose private and loopback addresses are allowed; None allows every private address.
    `proxy_looks_up`: a name is returned as it is, since a proxy looks it up and decides.

    :raises Unusable: when the URL or any of its addresses is not allowed
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise Unusable(f"The address cannot be parsed: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise Unusable("The address must begin with http:// or https:// and have a host.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise Unusable(
            "The address must not contain a user, password, ? or #. Give user and password in their own fields."
        )
    if proxy_looks_up and not _is_literal(host):
        return [host]
    found = list(dict.fromkeys(_looked_up(host, port or 80, within_s=within_s)))
    for text in found:
        address = ip_address(text.partition("%")[0])
        if private_in is not None and any(address in network for network in private_in):
            _check_address(address, may_be_loopback=True)
        else:
            _check_address(address, may_be_loopback=may_be_loopback)
            _check_public(address, private_in)
    return found


def is_within(url: str, networks: AllowedNetworks, *, within_s: float = NEARBY_S) -> bool:
    """Returns whether every address of the host is in these networks. False if its name cannot be looked up."""
    host = urlsplit(url).hostname or ""
    try:
        found = _looked_up(host, 80, within_s=within_s)
    except Unusable:
        return False
    return all(any(ip_address(text.partition("%")[0]) in network for network in networks) for text in found)


def _is_literal(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _looked_up(host: str, port: int, *, within_s: float) -> list[str]:
    """Returns the addresses of a name. It uses a thread, since nothing else ends a lookup at a silent name server.

    :raises Unusable: when there are none, or the lookup takes too long
    """
    said = SimpleQueue[list[str] | Exception]()

    def look() -> None:
        try:
            said.put([str(place[0]) for *_, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])
        except (OSError, ValueError) as error:  # a NUL in it, or a part that is too long for a name
            said.put(error)

    Thread(target=look, name="name of a Prometheus", daemon=True).start()
    try:
        found = said.get(timeout=within_s)
    except Empty as error:
        raise Unusable(f"The host name {host[:100]} cannot be resolved: no answer within {within_s:g} s.") from error
    if isinstance(found, Exception):
        raise Unusable(f"The host name {host[:100]} cannot be resolved: {found}") from found
    return found


def _check_address(address: IPAddress, *, may_be_loopback: bool) -> None:
    for reached in list(_embedded_in(address)) or [address]:
        if reached.is_loopback:
            if not may_be_loopback:
                allowed = "QUARTERDECK_TELEMETRY_LOOPBACK allows it"
                raise Unusable(f"The address is this host itself, {address}: {allowed}.")
        elif whose := next((whose for network, whose in _OF_CLOUDS.items() if reached in network), ""):
            raise Unusable(f"The address is {address}, a metadata service of {whose}. It is not queried.")
        elif _is_no_server(reached):
            raise Unusable(f"The address is {address}, which cannot be a server. It is not queried.")


def _check_public(address: IPAddress, private_in: AllowedNetworks | None) -> None:
    for reached in list(_embedded_in(address)) or [address]:
        if private_in is not None and not reached.is_global:
            raise Unusable(
                f"The address {address} is private and not in QUARTERDECK_NOTIFICATION_NETWORKS. It is not queried."
            )


def _embedded_in(address: IPAddress) -> Iterator[IPAddress]:
    """Yields the IPv4 addresses that an IPv6 address leads to: mapped, translated (NAT64), or tunnelled."""
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped:
        yield address.ipv4_mapped
    if address in NAT64:
        yield IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.sixtofour:
        yield address.sixtofour
    yield from address.teredo or ()


def _is_no_server(address: IPAddress) -> bool:
    is_special = address.is_link_local or address.is_multicast or address.is_unspecified or address.is_reserved
    return is_special or any(address in network for network in _NO_SERVERS)
