"""Posts to receivers outside of the fleet, and reads from them: public https addresses, or networks of a setting."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from django.conf import settings

from health.sources.addresses import certificates_at
from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.client import Address, Bounds, Client, PostAnswer
from health.telemetry.prometheus.hosts import check_host, is_within

BOUNDS = Bounds(connect_s=5.0, read_s=15.0, answer_s=20.0, answer_bytes=16 << 10)
READ_BOUNDS = Bounds(connect_s=5.0, read_s=10.0, answer_s=10.0, answer_bytes=4 << 20)


def post_to(url: str, body: bytes, headers: Mapping[str, str], *, secret: str, ca_file: str = "") -> PostAnswer:
    """Posts a body and returns the answer, whatever its status.

    :raises AnswerLost: when the request may have arrived, and no answer comes back
    :raises Unusable: when it cannot have arrived, as to a forbidden address, or the answer is a redirect
    """
    with _client(url, secret=secret, ca_file=ca_file, bounds=BOUNDS) as client:
        return client.post(_path(url), body, headers)


def read_from(url: str, headers: Mapping[str, str], *, secret: str, ca_file: str = "") -> bytes:
    """Returns the body of an answer to a GET.

    :raises Unusable: with the reason, for an answer other than 2xx, too
    """
    with _client(url, secret=secret, ca_file=ca_file, bounds=READ_BOUNDS) as client:
        return client.get(_path(url), headers)


def delete_at(url: str, headers: Mapping[str, str], *, secret: str, ca_file: str = "") -> None:
    """Sends a DELETE. Raises as `read_from` does."""
    with _client(url, secret=secret, ca_file=ca_file, bounds=READ_BOUNDS) as client:
        client.delete(_path(url), headers)


def _path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"


def _client(url: str, *, secret: str, ca_file: str, bounds: Bounds) -> Client:
    """:raises Unusable: when the address is forbidden"""
    parts, path = urlsplit(url), _path(url)
    if parts.scheme != "https" and not settings.NOTIFICATION_NETWORKS:
        raise Unusable("Messages are not sent over http://, where anybody on the way reads them.")
    root = f"{parts.scheme}://{parts.netloc}"
    address = Address(
        root,
        proxy=proxy_of(root),
        ca=certificates_at(ca_file),
        private_in=settings.NOTIFICATION_NETWORKS,
        path_secrets=(secret, path if secret in path else ""),
    )
    return Client(address, bounds)


def check_receiver(url: str) -> None:
    """Refuses an address that a receiver may not have.

    :raises Unusable: with the reason
    """
    networks = settings.NOTIFICATION_NETWORKS
    check_host(url, may_be_loopback=False, private_in=networks, proxy_looks_up=bool(proxy_of(url)))


def proxy_of(url: str) -> str:
    """Returns the HTTP proxy for an address; blank if there is none, or the receiver is in an allowed network."""
    proxy = settings.NOTIFICATION_PROXY
    return proxy if proxy and not is_within(url, settings.NOTIFICATION_NETWORKS) else ""
