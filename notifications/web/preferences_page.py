"""A person's own preferences, with the same call as REST."""

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from edges.requests import PersonRequest
from health.rules.base import Severity
from notifications.commands.preferences import save_preference
from notifications.commands.refusals import BadPreference
from notifications.models import Preference
from notifications.models.preference import LONGEST_HANDLE
from notifications.queries import offered_kinds
from notifications.web.channel_page import offered_zones
from people.rights import NotAllowed, Permission, require_somewhere

FIELDS = ("severities", "kinds", "mail", "zone", "slack_id", "teams_id")


class PreferenceForm(forms.Form):
    severities = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple, choices=[(each.value, each.value) for each in Severity]
    )
    kinds = forms.MultipleChoiceField(required=False, widget=forms.SelectMultiple({"size": 8}), choices=offered_kinds)
    mail = forms.CharField(max_length=LONGEST_HANDLE, required=False)
    zone = forms.ChoiceField(required=False, choices=offered_zones)
    slack_id = forms.CharField(max_length=LONGEST_HANDLE, required=False)
    teams_id = forms.CharField(max_length=LONGEST_HANDLE, required=False)


@require_http_methods(["GET", "HEAD", "POST"])
def my_notifications(request: PersonRequest) -> HttpResponse:
    try:
        require_somewhere(request.user, Permission.SEE)
    except NotAllowed as refusal:
        raise PermissionDenied(str(refusal)) from refusal
    now = timezone.now()
    if request.method != "POST":
        row = Preference.of(request.user, now=now)
        initial = {name: getattr(row, name) for name in FIELDS} | {"mail": row.mail or request.user.email}
        return _page(request, PreferenceForm(initial=initial, auto_id="%s"))
    form = PreferenceForm(request.POST, auto_id="%s")
    if form.is_valid():
        try:
            save_preference(request.user, now=now, **form.cleaned_data)
        except BadPreference as wrong:
            form.add_error(wrong.field, str(wrong))
        else:
            messages.success(request, "Your notifications are saved.")
            return redirect("my-notifications")
    return _page(request, form, status=400)


def _page(request: PersonRequest, form: PreferenceForm, *, status: int = 200) -> HttpResponse:
    return render(request, "notifications/mine.html", {"form": form}, status=status)
