"""Syslog over TLS: messages of RFC 5424, framed by octet counting (RFC 5425, 4.3)."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import SplitResult

DEFAULT_PORT = 6514  # RFC 5425, 4.1
LOG_AUDIT, NOTICE = 13, 5  # RFC 5424, 6.2.1
LARGEST = 8192  # octets that a receiver should process (RFC 5425, 4.3.1)
LONGEST_HOST = 255


class Syslog:
    key = "syslog"
    title = "Syslog over TLS"
    asks = "client certificate with its key, as one PEM file, if the receiver wants one"
    wants_address = "tls://HOST:6514"
    default_address = ""
    wants_recipients = ""
    edits = False
    is_pager = False
    repeats_changes = False
    heartbeat_min = 0
    heartbeat_hint = ""
    has_storms = False
    exports_audit = True


def frames(texts: Sequence[tuple[str, datetime]], *, kind: str, host: str) -> bytes:
    """Returns messages with their times as one stream. `kind` is the MSGID, such as `audit`."""
    return b"".join(b"%d %b" % (len(message), message) for message in (_line(*each, kind, host) for each in texts))


def port_of(address: SplitResult) -> int:
    return address.port or DEFAULT_PORT


def _line(text: str, at: datetime, kind: str, host: str) -> bytes:
    """Returns one message. The text is ASCII, so it needs no byte order mark (RFC 5424, 6.4)."""
    priority = LOG_AUDIT * 8 + NOTICE
    stamp = at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    named = re.sub(r"[^!-~]", "-", host)[:LONGEST_HOST] or "-"
    return f"<{priority}>1 {stamp} {named} quarterdeck - {kind} - {text}".encode("ascii")
