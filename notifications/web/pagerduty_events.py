"""Acknowledgements that people make in PagerDuty, by its V3 webhooks (developer.pagerduty.com/docs/webhooks-overview).

A signature proves each request: PagerDuty calls this, not a browser. An event that PagerDuty sends again counts once.
"""

import hashlib
import hmac
from datetime import datetime
from math import ceil

import msgspec
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from edges.request_parsers import LARGEST_BODY_BYTES
from edges.transition_errors import LostRace
from health.inbox.acts import acknowledge
from health.inbox.refusals import FindingRefusal
from health.models import Finding
from health.sources.secrets import NoSecret
from notifications.channels.pagerduty import PagerDuty
from notifications.models import Channel
from notifications.rounds.transport import CHANNEL_SECRETS
from people.sign_in.throttle import count_wrong_token

SIGNATURE = "X-PagerDuty-Signature"
ACKNOWLEDGED = "incident.acknowledged"
A_PERSON = "user_reference"  # an agent of another type is an integration: our own acknowledgement, for example
LONGEST_NAME = 100
LONGEST_ID = 80
NOT_SIGNED = "This channel does not exist, expects no webhooks, or the signature is not right."


class PagerDutyAgent(msgspec.Struct):
    type: str = ""
    summary: str | None = None


class PagerDutyIncident(msgspec.Struct):
    incident_key: str | None = None


class PagerDutyEvent(msgspec.Struct):
    id: str
    event_type: str
    occurred_at: datetime
    agent: PagerDutyAgent | None = None
    data: PagerDutyIncident = msgspec.field(default_factory=PagerDutyIncident)


class PagerDutyBody(msgspec.Struct):
    event: PagerDutyEvent


DECODER = msgspec.json.Decoder(PagerDutyBody)


@login_not_required
@csrf_exempt
@never_cache
@require_POST
def receive_events(request: HttpRequest, name: str) -> HttpResponse:
    """Acknowledges the finding of an incident that a person acknowledged. Other events change nothing."""
    now = timezone.now()
    if int(request.headers.get("Content-Length") or 0) > LARGEST_BODY_BYTES:
        return _answer("The body is too large.", status=413)
    channel = _signing_channel(request, name)
    if channel is None:
        wait = count_wrong_token(request, now=now)
        headers = {"Retry-After": str(ceil(wait.total_seconds()))} if wait else {}
        return _answer(NOT_SIGNED, status=429 if wait else 401, headers=headers)
    try:
        event = DECODER.decode(request.body).event
    except (msgspec.MsgspecError, RecursionError) as error:
        return _answer(f"The body is not an event of PagerDuty: {error}", status=400)
    return _answer(_result_of(event, channel, now=now))


def _signing_channel(request: HttpRequest, name: str) -> Channel | None:
    """Returns the channel whose secret signed the body. While secrets are replaced, several signatures come."""
    channel = Channel.objects.filter(name=name, kind=PagerDuty.key, is_on=True).first()
    if channel is None or not channel.secret_from:
        return None
    suffix = "_WEBHOOK" if channel.secret_from.startswith("env:") else ".webhook"
    try:
        secret = CHANNEL_SECRETS.secret_at(channel.secret_from + suffix, channel.name)
    except NoSecret:
        return None
    expected = f"v1={hmac.digest(secret.encode(), request.body, hashlib.sha256).hex()}".encode()
    given = request.headers.get(SIGNATURE, "").encode(errors="replace").split(b",")
    return channel if any(hmac.compare_digest(expected, each.strip()) for each in given) else None


def _result_of(event: PagerDutyEvent, channel: Channel, *, now: datetime) -> str:
    if event.event_type != ACKNOWLEDGED:
        return "Ignored: only acknowledgements are read."
    if event.agent is None or event.agent.type != A_PERSON:
        return "Ignored: no person acknowledged it."
    finding = _finding_of(event.data.incident_key or "")
    if finding is None:
        return "Ignored: the incident is not about a finding of this installation."
    if not channel.conversations.filter(key=f"finding/{finding.pk}").exists():
        return "Ignored: this channel has never named the finding."
    if finding.opened_at is None or event.occurred_at.astimezone(now.tzinfo) < finding.opened_at:
        return "Ignored: the finding has opened again since."
    try:
        acknowledge(
            finding, actor=_name_of(event.agent), reason="Acknowledged in PagerDuty.",
            key=f"pagerduty/{event.id[:LONGEST_ID]}", now=now,
        )  # fmt: skip
    except (FindingRefusal, LostRace) as refusal:
        return f"Ignored: {refusal}"
    return "Acknowledged."


def _finding_of(key: str) -> Finding | None:
    prefix = f"quarterdeck/{settings.INSTANCE}/finding/"
    number = key.removeprefix(prefix)
    if not key.startswith(prefix) or not number.isascii() or not number.isdecimal() or len(number) > len(str(2**53)):
        return None
    return Finding.objects.filter(pk=int(number)).select_related("cluster", "node").first()


def _name_of(agent: PagerDutyAgent) -> str:
    """Returns the person's name in PagerDuty, marked so that nobody takes it for an account of ours."""
    name = "".join(each for each in (agent.summary or "") if each.isprintable())[:LONGEST_NAME].strip()
    return f"{name or 'somebody'} (PagerDuty)"


def _answer(sentence: str, *, status: int = 200, headers: dict[str, str] | None = None) -> JsonResponse:
    return JsonResponse({"detail": sentence}, status=status, headers=headers)
