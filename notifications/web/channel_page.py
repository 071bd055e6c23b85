"""Adds, changes, tests and removes channels from pages, with the same calls as REST."""

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from edges.concurrent_edits import LENGTH
from edges.requests import PersonRequest, report_act
from edges.transition_errors import LostRace
from notifications.channels import CHANNELS
from notifications.commands.channels import (
    GIVEN,
    MOST_HEARTBEAT_MIN,
    add_channel,
    change_channel,
    mark_of,
    places_of,
    remove_channel,
    send_test,
)
from notifications.commands.refusals import BadChannel, NotificationRefusal
from notifications.models import AuditFormat, Channel
from notifications.queries import channel_rows, deliveries
from notifications.texts import link_to
from notifications.web.access import for_the_fleet, why_not_change
from people.rights import Permission

SHOWN = 20  # deliveries


def offered_zones() -> list[tuple[str, str]]:
    return [("", "UTC alone"), *((zone, zone) for zone in sorted(available_timezones()))]


class ChannelForm(forms.Form):
    """The settings of a channel. `Channel.kind` decides which of them count."""

    name = forms.CharField(max_length=63, required=False)
    kind = forms.ChoiceField(choices=[(kind.key, kind.title) for kind in CHANNELS.values()])
    address = forms.CharField(max_length=300, required=False)
    secret_from = forms.CharField(max_length=300, required=False)
    ca_file = forms.CharField(max_length=300, required=False)
    recipients = forms.CharField(max_length=3000, required=False)
    zone = forms.ChoiceField(required=False, choices=offered_zones)
    heartbeat_min = forms.IntegerField(min_value=0, max_value=MOST_HEARTBEAT_MIN, required=False)
    audit_format = forms.ChoiceField(choices=AuditFormat.choices, required=False)
    is_on = forms.BooleanField(required=False, initial=True)

    def clean_recipients(self) -> list[str]:
        return self.cleaned_data["recipients"].replace(",", " ").split()


@require_http_methods(["GET", "HEAD", "POST"])
@for_the_fleet(Permission.ADMINISTER)
def add(request: PersonRequest) -> HttpResponse:
    kind = request.GET.get("kind", "")
    initial = {
        "kind": kind, "is_on": True, "heartbeat_min": CHANNELS[kind].heartbeat_min if kind in CHANNELS else 0,
        "audit_format": request.GET.get("audit_format", AuditFormat.NONE),
    }  # fmt: skip
    form = ChannelForm(request.POST if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and form.is_valid():
        given = dict(form.cleaned_data)
        try:
            channel = add_channel(given.pop("name"), actor=request.user.get_username(), now=timezone.now(), **given)
        except BadChannel as wrong:
            form.add_error(wrong.field, str(wrong))
        except NotificationRefusal as refusal:
            form.add_error("name", str(refusal))
        else:
            messages.success(request, f"{channel.name} is added. Test it, then name it in a route.")
            return redirect("channel", channel_id=channel.pk)
    return _form(request, form, None, status=400 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@for_the_fleet(Permission.SEE)
def edit(request: PersonRequest, channel_id: int) -> HttpResponse:
    channel = get_object_or_404(Channel.objects.shared(), pk=channel_id)
    if request.method != "POST":
        initial = {name: getattr(channel, name) for name in GIVEN}
        initial |= {"name": channel.name, "recipients": "\n".join(channel.recipients)}
        return _form(request, ChannelForm(initial=initial), channel, was=mark_of(channel))
    if why_not_change(request):
        return redirect("channel", channel_id=channel.pk)
    form, was, status = ChannelForm(request.POST), request.POST.get("was", "")[:LENGTH], 400
    if form.is_valid():
        given = {name: form.cleaned_data[name] for name in GIVEN}
        try:
            change_channel(channel, actor=request.user.get_username(), now=timezone.now(), was=was, **given)
        except BadChannel as wrong:
            form.add_error(wrong.field, str(wrong))
        except LostRace as refusal:
            form.add_error(None, str(refusal))
            channel.refresh_from_db()
            was, status = mark_of(channel), 409
        else:
            messages.success(request, f"{channel.name} is saved.")
            return redirect("channel", channel_id=channel.pk)
    return _form(request, form, channel, was=was, status=status)


@require_POST
@for_the_fleet(Permission.ADMINISTER)
def test(request: PersonRequest, channel_id: int) -> HttpResponse:
    """Sends a test message; its page shows what the receiver answers."""
    channel = get_object_or_404(Channel.objects.shared(), pk=channel_id)
    to = reverse("channel", args=[channel.pk])
    with report_act(request, (NotificationRefusal,)):
        sent = send_test(channel, actor=request.user.get_username(), now=timezone.now())
        to = reverse("delivery", args=[sent.pk])
    return redirect(to)


@require_POST
@for_the_fleet(Permission.ADMINISTER)
def remove(request: PersonRequest, channel_id: int) -> HttpResponse:
    channel = get_object_or_404(Channel.objects.shared(), pk=channel_id)
    with report_act(
        request, (NotificationRefusal,), done=f"{channel.name} is removed. Its deliveries stay in the log."
    ):
        remove_channel(channel, actor=request.user.get_username(), now=timezone.now())
    return redirect("notifications")


def _form(
    request: PersonRequest, form: ChannelForm, channel: Channel | None, *, was: str = "", status: int = 200
) -> HttpResponse:
    chosen = CHANNELS.get(form["kind"].value()) or next(iter(CHANNELS.values()))
    path = reverse("pagerduty-events", args=[channel.name]) if channel else ""
    context: dict[str, Any] = {
        "form": form,
        "channel": channel,
        "row": channel_rows([channel])[0] if channel else None,
        "was": was,
        "kinds": list(CHANNELS.values()),
        "chosen": chosen,
        "secret_hint": f"{chosen.asks}. Enter its location, never the secret: {places_of(chosen)}",
        "log": deliveries(channel=channel.name)[:SHOWN] if channel else (),
        "acknowledgements_url": link_to(path) or path,
        "why_not": why_not_change(request),
    }
    return render(request, "notifications/channel.html", context, status=status)
