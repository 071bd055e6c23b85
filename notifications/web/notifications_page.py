"""The page of notifications: channels, routes, who would get what, and the delivery log."""

from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from edges.fields import DateAndTime
from edges.parts import part_response
from edges.requests import PersonRequest, report_act
from health.rules.base import Severity
from notifications.channels.base import Notification
from notifications.commands.channels import resend
from notifications.commands.refusals import NotificationRefusal
from notifications.models import Delivery, DeliveryState
from notifications.queries import (
    Recipients,
    channel_rows,
    deliveries,
    offered_kinds,
    offered_places,
    recipients_of,
    routes_in_order,
)
from notifications.web.access import for_the_fleet, why_not_change
from people.rights import Permission

SHOWN = 50  # deliveries; more are in REST
SEVERITIES = [(severity.value, severity.value) for severity in Severity]


class RecipientsForm(forms.Form):
    """The question who would get an event."""

    where = forms.ChoiceField(choices=offered_places)
    severity = forms.ChoiceField(choices=SEVERITIES)
    kind = forms.ChoiceField(choices=offered_kinds)
    at = DateAndTime(required=False)

    def recipients(self) -> Recipients:
        given = self.cleaned_data
        return recipients_of(**given | {"at": given["at"] or timezone.now()})


class LogForm(forms.Form):
    """The filter of the log. An invalid one shows everything."""

    state = forms.ChoiceField(choices=[("", "every state"), *DeliveryState.choices], required=False)
    channel = forms.CharField(max_length=63, required=False)


@require_GET
@for_the_fleet(Permission.SEE)
def notifications(request: PersonRequest) -> HttpResponse:
    asks = "where" in request.GET
    form = RecipientsForm(request.GET if asks else None, auto_id="%s")
    context: dict[str, Any] = {
        "channels": channel_rows(),
        "routes": routes_in_order(),
        "form": form,
        "recipients": form.recipients() if asks and form.is_valid() else None,
        "why_not": why_not_change(request),
        "has_address": bool(settings.PUBLIC_URL),
        **_log(request),
    }
    return render(request, "notifications/page.html", context)


@part_response
@for_the_fleet(Permission.SEE)
def log_part(request: PersonRequest) -> HttpResponse:
    return render(request, "notifications/_log.html", _log(request))


@require_GET
@for_the_fleet(Permission.SEE)
def delivery(request: PersonRequest, delivery_id: int) -> HttpResponse:
    row = get_object_or_404(deliveries(), pk=delivery_id)
    message = Notification.read(row.message)
    context = {"delivery": row, "message": message, "why_not": why_not_change(request)}
    return render(request, "notifications/delivery.html", context)


@part_response
@for_the_fleet(Permission.SEE)
def outcome_part(request: PersonRequest, delivery_id: int) -> HttpResponse:
    row = get_object_or_404(deliveries(), pk=delivery_id)
    return render(request, "notifications/_outcome.html", {"delivery": row})


@require_POST
@for_the_fleet(Permission.ADMINISTER)
def send_again(request: PersonRequest, delivery_id: int) -> HttpResponse:
    row = get_object_or_404(deliveries(), pk=delivery_id)
    with report_act(request, (NotificationRefusal,)):
        row = resend(row, actor=request.user.get_username(), now=timezone.now())
    return redirect("delivery", delivery_id=row.pk)


def _log(request: PersonRequest) -> dict[str, Any]:
    form = LogForm(request.GET)
    given = form.cleaned_data if form.is_valid() else {"state": "", "channel": ""}
    rows = list(deliveries(**given)[: SHOWN + 1])
    return {
        "log": rows[:SHOWN],
        "has_more": len(rows) > SHOWN,
        "log_state": given["state"],
        "log_channel": given["channel"],
        "log_states": [("", "every state"), *DeliveryState.choices],
        "log_waits": any(row.state == DeliveryState.WAITING for row in rows),
        "log_is_empty": not rows and not Delivery.objects.exists(),
    }
