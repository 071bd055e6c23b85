"""Sends one message to one channel, and returns what became of it. It never raises for a receiver's fault."""

import json
import smtplib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from edges.webhook_signatures import BadSigningSecret, signed_headers
from health.sources.posts import delete_at, post_to
from health.sources.secrets import NoSecret, SecretPlaces
from health.sources.streams import send_over_tls
from health.telemetry.prometheus.answers import Unusable
from kube.credential_life import CLIENT_CERTIFICATE
from kube.credentials import life_of_certificate
from notifications.channels.alertmanager import Alertmanager
from notifications.channels.base import (
    Acceptance,
    ChannelRequest,
    ChannelSettings,
    DeliveryAct,
    HttpChannel,
    Notification,
    SendOutcome,
)
from notifications.channels.mail import mail_of, outcome_of
from notifications.channels.other import Other, content_of
from notifications.channels.syslog import Syslog, frames, port_of
from notifications.models import Channel
from notifications.rounds.apprise_posts import post_through_apprise
from wording.sent_secrets import SentSecrets

CHANNEL_SECRETS = SecretPlaces("QUARTERDECK_CHANNEL_", "_CHANNELS", ".channels", "channel", "channel")
NO_SERVER = "No mail server is configured: set QUARTERDECK_SMTP_URL for web and workers."


@dataclass(frozen=True)
class AuditRecord:
    """A decision as it is exported."""

    key: int  # ascending
    at: datetime
    text: str  # JSON in ASCII


def send(
    channel: Channel, message: Notification, act: DeliveryAct, *, delivery: str, now: datetime, ref: str = ""
) -> SendOutcome | None:
    """Sends a message. `ref` names the message that it may edit. None: the receiver cannot use this act."""
    message = replace(message, zone=channel.zone)
    try:
        kind = channel.its_kind
        if isinstance(kind, Syslog):
            text = json.dumps({"act": act, "delivery": delivery, **message.written()})
            return _stream(channel, [(text, message.at)], kind="notification")
        target = replace(target_of(channel), ref=ref)
        if isinstance(kind, Other):
            content = content_of(message, act)
            return None if content is None else post_through_apprise(target.secret, content, message.severity)
        if not isinstance(kind, HttpChannel):
            return _mail(target, message, act, delivery=delivery, now=now)
        outgoing = kind.request(target, message, act, delivery=delivery, now=now)
        return None if outgoing is None else post(channel, target, outgoing, kind)
    except (NoSecret, BadSigningSecret, Unusable) as error:
        return SendOutcome(Acceptance.RETRY, 0, str(error))


def send_records(channel: Channel, records: Sequence[AuditRecord], *, now: datetime) -> SendOutcome:
    """Sends decisions in one request. The same decisions have the same id, by which a receiver recognizes them."""
    kind = channel.its_kind
    try:
        if not isinstance(kind, HttpChannel):
            return _stream(channel, [(record.text, record.at) for record in records], kind="audit")
        target = target_of(channel)
        name = f"audit-{settings.INSTANCE}-{records[0].key}-{records[-1].key}"
        entries = ",".join(record.text for record in records)
        head = json.dumps({"type": "audit.entries", "timestamp": now.isoformat(), "instance": settings.INSTANCE})
        body = f'{head[:-1]},"data":[{entries}]}}'.encode()
        outgoing = ChannelRequest(target.address, body, signed_headers(target.secret, name, body, now=now))
        return post(channel, target, outgoing, kind)
    except (NoSecret, BadSigningSecret, Unusable) as error:
        return SendOutcome(Acceptance.RETRY, 0, str(error))


def _stream(channel: Channel, texts: Sequence[tuple[str, datetime]], *, kind: str) -> SendOutcome:
    """Sends syslog messages. Accepted: the receiver has taken all bytes. Syslog has no other acknowledgement.

    :raises NoSecret: when its client certificate is missing
    :raises Unusable: when it is unknown whether all arrived
    """
    place = channel.secret_from
    certificate = CHANNEL_SECRETS.file_at(place, channel.name) if place else None
    address, own = urlsplit(channel.address), urlsplit(settings.PUBLIC_URL).hostname or settings.INSTANCE
    content = frames(texts, kind=kind, host=own)
    send_over_tls(address.hostname or "", port_of(address), content, ca_file=channel.ca_file, certificate=certificate)
    return SendOutcome(Acceptance.ACCEPTED)


def send_heartbeat(channel: Channel, kind: HttpChannel, *, now: datetime) -> SendOutcome | None:
    """Sends a heartbeat. None: the receiver takes none."""
    every = timedelta(minutes=channel.heartbeat_min)
    try:
        target = target_of(channel)
        outgoing = kind.heartbeat(target, instance=settings.INSTANCE, every=every, now=now)
        return None if outgoing is None else post(channel, target, outgoing, kind)
    except (NoSecret, BadSigningSecret, Unusable) as error:
        return SendOutcome(Acceptance.RETRY, 0, str(error))


def send_again(channel: Channel, kind: Alertmanager, messages: Sequence[Notification], *, now: datetime) -> SendOutcome:
    """Sends messages that the receiver would forget, in one request."""
    try:
        target = target_of(channel)
        messages = [replace(each, zone=channel.zone) for each in messages]
        requests = [kind.request(target, each, DeliveryAct.UPDATE, delivery=each.key, now=now) for each in messages]
        return post(channel, target, kind.joined(requests), kind)
    except (NoSecret, Unusable) as error:
        return SendOutcome(Acceptance.RETRY, 0, str(error))


def put_silence(
    channel: Channel, kind: Alertmanager, key: str, *, ref: str, by: str, comment: str, until: datetime, now: datetime
) -> SendOutcome:
    """Creates the silence of an alert, or replaces the one that `ref` names. The outcome has its id.

    :raises NoSecret: when the channel has no secret
    :raises Unusable: when no answer arrives
    """
    target = target_of(channel)
    outgoing = kind.silence(target, key, ref=ref, by=by, comment=comment, until=until, now=now)
    return post(channel, target, outgoing, kind)


def end_silence(channel: Channel, kind: Alertmanager, ref: str) -> None:
    """Ends a silence. Raises as `put_silence` does, also for a refusal."""
    target = target_of(channel)
    url, headers = kind.one_silence(target, ref)
    delete_at(url, headers, secret=target.secret, ca_file=channel.ca_file)


def certificate_end(channel: Channel) -> datetime | None:
    """Returns the end of the client certificate; None without one, if a program renews it, or if it cannot be read."""
    if not isinstance(channel.its_kind, Syslog) or not channel.secret_from:
        return None
    try:
        path = CHANNEL_SECRETS.file_at(channel.secret_from, channel.name)
        life = life_of_certificate(path.read_bytes(), CLIENT_CERTIFICATE)
    except (NoSecret, OSError, ValueError):  # the send itself reports the error
        return None
    return life.ends_at if life.is_renewed_by_hand else None


def target_of(channel: Channel) -> ChannelSettings:
    """Returns the settings of a channel with its secret.

    :raises NoSecret: when there is none for it
    """
    secret = CHANNEL_SECRETS.secret_at(channel.secret_from, channel.name)
    return ChannelSettings(channel.name, channel.address, secret, tuple(channel.recipients))


def post(channel: Channel, target: ChannelSettings, outgoing: ChannelRequest, kind: HttpChannel) -> SendOutcome:
    """Sends one request.

    :raises Unusable: when no answer arrives
    """
    answer = post_to(outgoing.url, outgoing.body, outgoing.headers, secret=target.secret, ca_file=channel.ca_file)
    return kind.outcome(answer.status, answer.headers, answer.body)


def _mail(
    target: ChannelSettings, message: Notification, act: DeliveryAct, *, delivery: str, now: datetime
) -> SendOutcome:
    if not settings.SMTP_URL:
        return SendOutcome(Acceptance.RETRY, 0, NO_SERVER)
    content = mail_of(message, act, delivery=delivery, now=now)
    mail = EmailMessage(
        content.subject, content.body, settings.DEFAULT_FROM_EMAIL, list(target.recipients),
        headers=dict(content.headers), connection=get_connection(),
    )  # fmt: skip
    try:
        mail.send()
    except (OSError, smtplib.SMTPException) as error:
        outcome = outcome_of(error)
        words = SentSecrets(settings.EMAIL_HOST_PASSWORD).cut_text(outcome.sentence)
        return SendOutcome(outcome.verdict, outcome.status, words)
    return outcome_of(None)
