"""The lives of the certificates and tokens by which a cluster is reached."""

import base64
import binascii
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from cryptography import x509

from kube.credential_life import CLIENT_CERTIFICATE, SERVER_CERTIFICATE, TOKEN, CredentialLife


class _Claims(msgspec.Struct):
    exp: float
    iat: float


CLAIMS = msgspec.json.Decoder(_Claims)


def lives_of(*, certificate_file: str, authorization: str, peer: bytes | None) -> Iterator[CredentialLife]:
    """Yields the lives that are known: of the client certificate, of the token, and of the server's certificate."""
    if certificate_file:
        with suppress(OSError, ValueError):  # the connection itself reports the error
            yield life_of_certificate(Path(certificate_file).read_bytes(), CLIENT_CERTIFICATE)
    if life := _life_of_token(authorization.removeprefix("Bearer ")):
        yield life
    if peer:
        with suppress(ValueError):
            certificate = x509.load_der_x509_certificate(peer)
            yield CredentialLife(SERVER_CERTIFICATE, certificate.not_valid_before_utc, certificate.not_valid_after_utc)


def life_of_certificate(pem: bytes, kind: str) -> CredentialLife:
    """Returns the life of the first certificate of a PEM file.

    :raises ValueError: when it has none
    """
    certificate = x509.load_pem_x509_certificate(pem)
    return CredentialLife(kind, certificate.not_valid_before_utc, certificate.not_valid_after_utc)


def _life_of_token(token: str) -> CredentialLife | None:
    """Returns the life that a JSON Web Token states (RFC 7519, 4.1); None for another token, or one without an end."""
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = CLAIMS.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return CredentialLife(TOKEN, _at(claims.iat), _at(claims.exp))
    except (binascii.Error, ValueError, OverflowError, OSError):  # msgspec's errors are ValueErrors
        return None


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def peer_certificate(response: Any) -> bytes | None:
    """Returns the server's certificate of an answer that is still on the wire; None without TLS."""
    connected = getattr(getattr(response, "connection", None), "sock", None)
    read = getattr(connected, "getpeercert", None)
    return read(binary_form=True) if read else None
