"""Signatures of webhooks: Standard Webhooks 1.0 (github.com/standard-webhooks/standard-webhooks)."""

import base64
import binascii
import hashlib
import hmac
from datetime import datetime

PREFIX = "whsec_"


class BadSigningSecret(ValueError):
    """The signing secret is not `whsec_` with 24 to 64 bytes in Base64."""


def signed_headers(secret: str, delivery: str, body: bytes, *, now: datetime) -> dict[str, str]:
    """Returns the headers of a signed JSON body. A repeated delivery has the same id.

    :raises BadSigningSecret: when a secret is none
    """
    at = f"{now.timestamp():.0f}"
    return {
        "Content-Type": "application/json",
        "webhook-id": delivery,
        "webhook-timestamp": at,
        "webhook-signature": signature(secret, delivery, at, body),
    }


def signature(secret: str, delivery: str, at: str, body: bytes) -> str:
    """Returns the value of `webhook-signature`: one for each secret, while a secret is being replaced.

    :raises BadSigningSecret: when one of them is none
    """
    content = f"{delivery}.{at}.".encode() + body
    return " ".join(
        f"v1,{base64.b64encode(hmac.digest(_key_in(one), content, hashlib.sha256)).decode()}" for one in secret.split()
    )


def _key_in(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise BadSigningSecret("The signing secret is not in Base64.") from error
    if not secret.startswith(PREFIX) or not 24 <= len(key) <= 64:
        raise BadSigningSecret(f"The signing secret is {PREFIX} and 24 to 64 bytes in Base64.")
    return key
