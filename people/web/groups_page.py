"""Groups of people, for whoever gives every role."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from edges.moves import LostRace
from edges.requests import PersonRequest, answered
from people.models import User
from people.rights import NotAllowed, Permission, require, require_somewhere, why_not
from people.roster import groups
from people.roster.accounts import NameTaken
from people.roster.groups import AlreadyIn, every_group

REFUSALS = (AlreadyIn, LostRace, NameTaken, NotAllowed)


@never_cache
@require_GET
def people_groups(request: PersonRequest) -> HttpResponse:
    return _list(request)


@require_POST
def add(request: PersonRequest) -> HttpResponse:
    name = request.POST.get("name", "")
    try:
        require(request.user, Permission.ADMINISTER)
        group = groups.add(name, **_acting(request))
    except ValidationError as refusal:
        return _list(request, name=name, wrong=" ".join(refusal.messages), status=400)
    except REFUSALS as refusal:
        return _list(request, name=name, wrong=str(refusal), status=403 if isinstance(refusal, NotAllowed) else 409)
    messages.success(request, f"There is a group {group.name} now. Nobody is in it yet.")
    return redirect("groups")


@require_POST
def remove(request: PersonRequest, group_id: int) -> HttpResponse:
    group = get_object_or_404(Group, pk=group_id)
    said = f"The group {group.name} is gone. A plan that asks for its members waits."
    return _done(request, lambda: groups.remove(group, **_acting(request)), said)


@require_POST
def join(request: PersonRequest, group_id: int) -> HttpResponse:
    group = get_object_or_404(Group, pk=group_id)
    person = User.objects.filter(username=request.POST.get("person", "")).first()
    if person is None:
        messages.error(request, "Choose somebody who is there.")
        return redirect("groups")
    said = f"{person.username} is in {group.name} now."
    return _done(request, lambda: groups.join(group, person, **_acting(request)), said)


@require_POST
def leave(request: PersonRequest, group_id: int, person_id: int) -> HttpResponse:
    group, person = get_object_or_404(Group, pk=group_id), get_object_or_404(User, pk=person_id)
    said = f"{person.username} is in {group.name} no more."
    return _done(request, lambda: groups.leave(group, person, **_acting(request)), said)


def _done(request: PersonRequest, act: Callable[[], None], said: str) -> HttpResponse:
    with answered(request, REFUSALS, done=said):
        require(request.user, Permission.ADMINISTER)
        act()
    return redirect("groups")


def _acting(request: PersonRequest) -> dict[str, Any]:
    return {"actor": request.user.username, "now": timezone.now()}


def _list(request: PersonRequest, *, name: str = "", wrong: str = "", status: int = 200) -> HttpResponse:
    try:
        require_somewhere(request.user, Permission.ADMINISTER)
    except NotAllowed as refusal:
        raise PermissionDenied(str(refusal)) from refusal
    everybody = list(User.objects.filter(is_active=True).order_by("username"))
    rows = [(group, list(group.user_set.all())) for group in every_group()]
    context = {
        "place": "people",
        "rows": [(group, inside, [each for each in everybody if each not in inside]) for group, inside in rows],
        "name": name[: groups.LONGEST_NAME + 1],
        "wrong": wrong,
        "why_not": why_not(request.user, Permission.ADMINISTER),
    }
    return render(request, "people/groups.html", context, status=status)
