"""A signed webhook: Standard Webhooks 1.0 (github.com/standard-webhooks/standard-webhooks)."""

import base64
import binascii
import hashlib
import hmac
from datetime import datetime

from notifications.channels.base import (
    JSON,
    ChannelRequest,
    ChannelSettings,
    DeliveryAct,
    HttpChannel,
    Notification,
    as_json,
)

PREFIX = "whsec_"


class BadSigningSecret(ValueError):
    """The signing secret is not `whsec_` with 24 to 64 bytes in Base64."""


class Webhook(HttpChannel):
    key = "webhook"
    title = "Signed webhook"
    asks = "signing secret: whsec_ and 24 to 64 bytes in Base64"
    wants_address = "address that receives the POST"
    has_storms = False  # a machine reads each event

    def request(
        self, target: ChannelSettings, message: Notification, act: DeliveryAct, *, delivery: str, now: datetime
    ) -> ChannelRequest:
        body = as_json(
            {"type": message.kind, "timestamp": message.at.isoformat(), "act": act, "data": message.written()}
        )
        at = f"{now.timestamp():.0f}"
        signed = signature(target.secret, delivery, at, body)
        return ChannelRequest(
            target.address,
            body,
            {**JSON, "webhook-id": delivery, "webhook-timestamp": at, "webhook-signature": signed},
        )


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
