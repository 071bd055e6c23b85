"""Other services through the library apprise (github.com/caronc/apprise): notes only, without updates and ends.

The secret is the service's apprise address. Only services with a host of their own are allowed, because apprise itself
sends the request: an address cannot lead it elsewhere.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from notifications.channels.base import Acceptance, DeliveryAct, Notification, SendOutcome, shorten

# By scheme of the address, the host to which apprise 2.3.0 sends (`notify_url` of apprise/plugins).
HOSTS: Mapping[str, str] = {
    "dingtalk": "oapi.dingtalk.com",
    "discord": "discord.com",
    "feishu": "open.feishu.cn",
    "gchat": "chat.googleapis.com",
    "lark": "open.larksuite.com",
    "line": "api.line.me",
    "pover": "api.pushover.net",
    "tgram": "api.telegram.org",
    "wecombot": "qyapi.weixin.qq.com",
}
MOST_TARGETS = 4  # of one address; each may take two time-outs of TIMEOUT_S
TIMEOUT_S = 5.0
LONGEST_BODY = 1500  # characters: the least that a service takes whole is 1,900 (Discord)
NOT_ACCEPTED = "The service did not accept the message, and apprise gives no reason."
STATUS = re.compile(r"error=(\d{3})")
RETRIED = frozenset({408, 425, 429})


class Other:
    key = "other"
    title = "Other, through apprise"
    asks = f"apprise address of the service, one of: {', '.join(HOSTS)}"
    wants_address = ""
    default_address = ""
    wants_recipients = ""
    edits = False
    is_pager = False
    repeats_changes = True
    heartbeat_min = 0
    heartbeat_hint = ""
    has_storms = True
    exports_audit = False


@dataclass(frozen=True)
class OtherContent:
    title: str
    body: str


class BadAppriseAddress(Exception):
    """The address is of no allowed service, or has options."""


def host_of(address: str) -> str:
    """Returns the host to which apprise sends a message for this address.

    :raises BadAppriseAddress: when it is of another service, or has options, which could switch off TLS checks
    """
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise BadAppriseAddress("The apprise address cannot be parsed.") from error
    host = HOSTS.get(parts.scheme)
    if host is None:
        raise BadAppriseAddress(f"The service of the apprise address is none of: {', '.join(HOSTS)}.")
    if parts.query or parts.fragment or any(character.isspace() or character == "," for character in address):
        raise BadAppriseAddress("The apprise address must be one address, without ?options.")
    return host


def content_of(message: Notification, act: DeliveryAct) -> OtherContent | None:
    """Returns the text. None for a change and for an end, except for a finding that became more severe."""
    if act is DeliveryAct.RESOLVE or (act is DeliveryAct.UPDATE and message.kind != "finding.worse"):
        return None
    return OtherContent(message.title, shorten("\n".join(message.paragraphs), LONGEST_BODY))


def outcome_of(words: str, *, is_accepted: bool) -> SendOutcome:
    """Returns what became of a message. `words` is what apprise logged."""
    if is_accepted:
        return SendOutcome(Acceptance.ACCEPTED, 200)
    found = STATUS.search(words)
    status = int(found[1]) if found else 0
    is_refusal = 400 <= status < 500 and status not in RETRIED
    return SendOutcome(Acceptance.REFUSED if is_refusal else Acceptance.RETRY, status, words or NOT_ACCEPTED)
