"""Posts to receivers outside of the fleet: to public https addresses, or to the networks that a setting allows."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from django.conf import settings

from health.sources.addresses import certificates_at
from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.client import Address, Bounds, Client, PostAnswer

BOUNDS = Bounds(connect_s=5.0, read_s=15.0, answer_s=20.0, answer_bytes=16 << 10)


def post_to(url: str, body: bytes, headers: Mapping[str, str], *, secret: str, ca_file: str = "") -> PostAnswer:
    """Posts a body and returns the answer, whatever its status.

    :raises AnswerLost: when the request may have arrived, and no answer comes back
    :raises Unusable: when it cannot have arrived, as to a forbidden address, or the answer is a redirect
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not settings.NOTIFICATION_NETWORKS:
        raise Unusable("Messages are not sent over http://, where anybody on the way reads them.")
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    address = Address(
        f"{parts.scheme}://{parts.netloc}",
        ca=certificates_at(ca_file),
        private_in=settings.NOTIFICATION_NETWORKS,
        path_secrets=(secret, path if secret in path else ""),
    )
    with Client(address, BOUNDS) as client:
        return client.post(path, body, headers)
