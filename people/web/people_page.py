"""Everybody there is and what they may do where; for whoever gives roles somewhere."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from edges.requests import PersonRequest, answered
from people.models import ApiToken, RoleBinding, User
from people.places import FLEET, Place
from people.rights import NotAllowed, Permission, may_administer, require, require_admin_of, require_somewhere, why_not
from people.roster import accounts
from people.roster.accounts import HasItAlready, LastAdmin, NameTaken, revoke
from people.roster.everybody import RolesKnownTo, everybody, may_see_tokens, see_people, tokens_of
from people.sign_in.access import path_for
from people.web.roster_forms import PersonForm, RoleForm

REFUSALS = (HasItAlready, LastAdmin, NameTaken, NotAllowed)


@never_cache
@require_GET
def people(request: PersonRequest) -> HttpResponse:
    return _list(request)


@never_cache
@require_POST
def add(request: PersonRequest) -> HttpResponse:
    """Somebody new, and the link by which they set their password. It is shown on this one page."""
    _only_admins(request)
    form = PersonForm(request.POST)
    if why_not(request.user, Permission.ADMINISTER):
        return _list(request, status=403)
    if not form.is_valid():
        return _list(request, form=form, status=400)
    try:
        person = accounts.add(form.cleaned_data["name"], actor=request.user.username, now=timezone.now())
    except NameTaken as refusal:
        form.add_error("name", str(refusal))
        return _list(request, form=form, status=409)
    return _with_link(request, person)


@never_cache
@require_GET
def person(request: PersonRequest, person_id: int) -> HttpResponse:
    _only_admins(request)
    return _person(request, get_object_or_404(User, pk=person_id))


@never_cache
@require_POST
def offer_password(request: PersonRequest, person_id: int) -> HttpResponse:
    """For whoever may give every role: who sets a password may be that person from then on."""
    _only_admins(request)
    found = get_object_or_404(User, pk=person_id)
    try:
        require(request.user, Permission.ADMINISTER)
    except NotAllowed as refusal:
        raise PermissionDenied(str(refusal)) from refusal
    return _with_link(request, found)


@require_POST
def switch(request: PersonRequest, person_id: int, to: str) -> HttpResponse:
    _only_admins(request)
    found = get_object_or_404(User, pk=person_id)
    act = accounts.switch_on if to == "on" else accounts.switch_off
    return _done(
        request, found, lambda: act(found, **_acting(request)), f"{found.username} is switched {to}.", on=FLEET
    )


@require_POST
def grant(request: PersonRequest, person_id: int) -> HttpResponse:
    _only_admins(request)
    found = get_object_or_404(User, pk=person_id)
    form = RoleForm(request.POST, places=RolesKnownTo(request.user).places.values())
    if not form.is_valid():
        return _person(request, found, sent=request.POST, status=400)
    role, place = form.cleaned_data["role"], form.cleaned_data["place"]
    said = f"{found.username} is {role} of {place.words} now."
    return _done(request, found, lambda: accounts.grant(found, role, place, **_acting(request)), said, on=place)


@require_POST
def take(request: PersonRequest, person_id: int, binding_id: int) -> HttpResponse:
    _only_admins(request)
    binding = get_object_or_404(RoleBinding.objects.select_related("user"), pk=binding_id, user__pk=person_id)
    given = RolesKnownTo(request.user).of(binding)
    if given is None:
        raise Http404
    place = given.place
    words = place.words if place else f"a {binding.scope} that is gone"
    said = f"{binding.user.username} is no {binding.role} of {words} any more."
    on = place or FLEET
    return _done(request, binding.user, lambda: accounts.take(binding, place, **_acting(request)), said, on=on)


@require_POST
def revoke_token(request: PersonRequest, person_id: int, token_id: int) -> HttpResponse:
    _only_admins(request)
    token = get_object_or_404(ApiToken.objects.select_related("user"), pk=token_id, user__pk=person_id)
    said = f"The token “{token.name}” of {token.user.username} is revoked."
    return _done(request, token.user, lambda: revoke(token, **_acting(request)), said, on=FLEET)


def _done(request: PersonRequest, found: User, act: Callable[[], object], said: str, *, on: Place) -> HttpResponse:
    """One act, if the actor may do it there; then the page of the person again."""
    with answered(request, REFUSALS, done=said):
        require_admin_of(request.user, on)
        act()
    return redirect("person", person_id=found.pk)


def _with_link(request: PersonRequest, found: User) -> HttpResponse:
    accounts.note_password(found, "person.password-link", **_acting(request))
    found.refresh_from_db()
    return _person(request, found, link=request.build_absolute_uri(path_for(found)))


def _acting(request: PersonRequest) -> dict[str, Any]:
    return {"actor": request.user.username, "now": timezone.now()}


def _only_admins(request: PersonRequest) -> None:
    try:
        require_somewhere(request.user, Permission.ADMINISTER)
    except NotAllowed as refusal:
        raise PermissionDenied(str(refusal)) from refusal


def _list(request: PersonRequest, *, form: PersonForm | None = None, status: int = 200) -> HttpResponse:
    _only_admins(request)
    roles = RolesKnownTo(request.user)
    context = {
        "rows": see_people(everybody(), roles),
        "knows_all": roles.are_all,
        "form": form or PersonForm(),
        "why_not": why_not(request.user, Permission.ADMINISTER),
    }
    return render(request, "people/people/page.html", context, status=status)


def _person(
    request: PersonRequest, found: User, *, link: str = "", sent: QueryDict | None = None, status: int = 200
) -> HttpResponse:
    """`sent`: the form of a role that was refused."""
    roles = RolesKnownTo(request.user)
    (seen,) = see_people([found], roles)
    mine = [place for place in roles.places.values() if may_administer(request.user, place)]
    context = {
        "person": found,
        "link": link,
        "bindings": [(each.binding, each.place, each.place in mine) for each in seen.roles],
        "knows_all": roles.are_all,
        "form": RoleForm(sent, places=roles.places.values(), offered=mine),
        "may_see_tokens": may_see_tokens(found, request.user),
        "tokens": tokens_of(found),
        "now": timezone.now(),
        "why_not": why_not(request.user, Permission.ADMINISTER),
    }
    return render(request, "people/people/person.html", context, status=status)
