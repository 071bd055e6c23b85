"""The page of groups of people, for those who give roles."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from edges.requests import PersonRequest, report_act
from edges.transition_errors import LostRace
from people.models import User
from people.rights import NotAllowed, Permission, require, require_somewhere, why_not
from people.roster import groups
from people.roster.accounts import NameTaken
from people.roster.groups import AlreadyIn, every_group
from people.sign_in.step_up import require_recent_sign_in
from people.web.roster_forms import GroupForm, MemberForm

REFUSALS = (AlreadyIn, LostRace, NameTaken, NotAllowed)


@never_cache
@require_GET
def people_groups(request: PersonRequest) -> HttpResponse:
    return _list(request)


@require_POST
def add(request: PersonRequest) -> HttpResponse:
    form = GroupForm(request.POST)
    if why_not(request.user, Permission.ADMINISTER):
        return _list(request, status=403)
    if not form.is_valid():
        return _list(request, adding=form, status=400)
    try:
        group = groups.add(form.cleaned_data["name"], **_actor_fields(request))
    except NameTaken as refusal:
        form.add_error("name", str(refusal))
        return _list(request, adding=form, status=409)
    messages.success(request, f"The group {group.name} was added. It has no members yet.")
    return redirect("groups")


@require_POST
def remove(request: PersonRequest, group_id: int) -> HttpResponse:
    group = get_object_or_404(Group, pk=group_id)
    message = f"The group {group.name} was removed. Plans that require its members wait."
    return _done(request, lambda: groups.remove(group, **_actor_fields(request)), message)


@require_POST
def join(request: PersonRequest, group_id: int) -> HttpResponse:
    group = get_object_or_404(Group, pk=group_id)
    form = MemberForm(request.POST, group_id=group.pk)
    if not form.is_valid():
        return _list(request, joining=(group.pk, request.POST), status=400)
    require_recent_sign_in(request)
    person = form.cleaned_data["person"]
    message = f"{person.username} is in {group.name} now."
    return _done(request, lambda: groups.join(group, person, **_actor_fields(request)), message)


@require_POST
def leave(request: PersonRequest, group_id: int, person_id: int) -> HttpResponse:
    group, person = get_object_or_404(Group, pk=group_id), get_object_or_404(User, pk=person_id)
    message = f"{person.username} left {group.name}."
    return _done(request, lambda: groups.leave(group, person, **_actor_fields(request)), message)


def _done(request: PersonRequest, act: Callable[[], None], message: str) -> HttpResponse:
    with report_act(request, REFUSALS, done=message):
        require(request.user, Permission.ADMINISTER)
        act()
    return redirect("groups")


def _actor_fields(request: PersonRequest) -> dict[str, Any]:
    return {"actor": request.user.username, "now": timezone.now()}


def _list(
    request: PersonRequest,
    *,
    adding: GroupForm | None = None,
    joining: tuple[int, QueryDict] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Renders the list. `joining` is the group and the refused form."""
    try:
        require_somewhere(request.user, Permission.ADMINISTER)
    except NotAllowed as refusal:
        raise PermissionDenied(str(refusal)) from refusal
    people = list(User.objects.filter(is_active=True).order_by("username"))
    rows = [(group, list(group.user_set.all())) for group in every_group()]
    refused, sent = joining or (None, None)
    context = {
        "rows": [
            (group, inside, others, MemberForm(sent if group.pk == refused else None, group_id=group.pk, among=others))
            for group, inside in rows
            for others in [[person for person in people if person not in inside]]
        ],
        "form": adding or GroupForm(),
        "why_not": why_not(request.user, Permission.ADMINISTER),
    }
    return render(request, "people/people/groups.html", context, status=status)
