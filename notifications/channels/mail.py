"""E-mail by SMTP. The mails about one subject are one thread: each refers to the first one's Message-ID."""

import hashlib
import smtplib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime

from notifications.channels.base import Acceptance, DeliveryAct, Notification, SendOutcome

DOMAIN = "quarterdeck.invalid"  # the domain of Message-IDs, which nobody else uses


class Mail:
    key = "mail"
    title = "E-mail"
    asks = ""
    wants_address = ""
    default_address = ""
    wants_recipients = "mail addresses, separated by commas"
    edits = False
    is_pager = False
    repeats_changes = True
    heartbeat_min = 0
    heartbeat_hint = ""
    has_storms = True
    exports_audit = False


@dataclass(frozen=True)
class MailContent:
    subject: str
    body: str
    headers: Mapping[str, str]


def mail_of(message: Notification, act: DeliveryAct, *, delivery: str, now: datetime) -> MailContent:
    """Returns the mail of a delivery. A repeated delivery has the same Message-ID, which mail programs show once."""
    begins = act in (DeliveryAct.OPEN, DeliveryAct.DIGEST)
    prefix = "Resolved: " if act is DeliveryAct.RESOLVE else ""
    thread = f"<{hashlib.sha256(message.key.encode()).hexdigest()[:32]}@{DOMAIN}>"
    headers = {
        "Message-ID": thread if begins else f"<{delivery}@{DOMAIN}>",
        "Date": format_datetime(now),
        "Auto-Submitted": "auto-generated",
    }
    if act in (DeliveryAct.UPDATE, DeliveryAct.RESOLVE):
        headers |= {"In-Reply-To": thread, "References": thread}
    subject = " ".join(f"{prefix}[{message.severity}] {message.title}".split())  # no line break may enter a header
    return MailContent(subject, "\n\n".join([message.title, *message.paragraphs]) + "\n", headers)


def outcome_of(error: Exception | None) -> SendOutcome:
    """Returns what became of a mail. SMTP answers 4xx for later and 5xx for never (RFC 5321, 4.2.1)."""
    if error is None:
        return SendOutcome(Acceptance.ACCEPTED, 250)
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        status, words = next(iter(error.recipients.values()))
        said = "; ".join(f"{to}: {_text(why)}" for to, (_, why) in error.recipients.items())
        return SendOutcome(
            Acceptance.REFUSED if status >= 500 else Acceptance.RETRY, status, said[:300] or _text(words)
        )
    if isinstance(error, smtplib.SMTPResponseException):
        verdict = Acceptance.REFUSED if error.smtp_code >= 500 else Acceptance.RETRY
        return SendOutcome(verdict, error.smtp_code, _text(error.smtp_error)[:300])
    return SendOutcome(Acceptance.RETRY, 0, f"The mail server cannot be reached: {error}"[:300])


def _text(words: bytes | str) -> str:
    return words.decode(errors="replace") if isinstance(words, bytes) else words
