"""The page of people and their roles, for those who give roles."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from edges.requests import PersonRequest, report_act
from people.models import ApiToken, RoleBinding, User
from people.places import FLEET, Place
from people.rights import NotAllowed, Permission, may_administer, require, require_admin_of, require_somewhere, why_not
from people.roster import accounts
from people.roster.accounts import HasItAlready, LastAdmin, NameTaken, revoke
from people.roster.everybody import RolesKnownTo, everybody, has_single_sign_on, may_see_tokens, see_people, tokens_of
from people.roster.second_factors import factors_of, remove
from people.roster.sessions import SHOWN, end_sessions, sessions_of
from people.sign_in.access import path_for
from people.sign_in.second_factor import has_second_factor
from people.sign_in.step_up import require_recent_sign_in
from people.web.roster_forms import PersonForm, RoleForm

REFUSALS = (HasItAlready, LastAdmin, NameTaken, NotAllowed)


@never_cache
@require_GET
def people(request: PersonRequest) -> HttpResponse:
    return _list(request)


@never_cache
@require_POST
def add(request: PersonRequest) -> HttpResponse:
    """Adds a person and shows once the link to set the password."""
    _only_admins(request)
    form = PersonForm(request.POST)
    if why_not(request.user, Permission.ADMINISTER):
        return _list(request, status=403)
    if not form.is_valid():
        return _list(request, form=form, status=400)
    require_recent_sign_in(request)
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
    """Shows a link to set a password. Only for admins of the fleet, since the link gives access to the account."""
    _only_admins(request)
    person = get_object_or_404(User, pk=person_id)
    try:
        require(request.user, Permission.ADMINISTER)
    except NotAllowed as refusal:
        raise PermissionDenied(str(refusal)) from refusal
    require_recent_sign_in(request)
    return _with_link(request, person)


@require_POST
def switch(request: PersonRequest, person_id: int, to: str) -> HttpResponse:
    _only_admins(request)
    person = get_object_or_404(User, pk=person_id)
    if to == "on":
        require_recent_sign_in(request)
    act = accounts.switch_on if to == "on" else accounts.switch_off
    return _done(
        request,
        person,
        lambda: act(person, **_actor_fields(request)),
        f"{person.username} is switched {to}.",
        on=FLEET,
    )


@require_POST
def grant(request: PersonRequest, person_id: int) -> HttpResponse:
    _only_admins(request)
    person = get_object_or_404(User, pk=person_id)
    form = RoleForm(request.POST, places=RolesKnownTo(request.user).places.values())
    if not form.is_valid():
        return _person(request, person, sent=request.POST, status=400)
    require_recent_sign_in(request)
    role, place = form.cleaned_data["role"], form.cleaned_data["place"]
    message = f"{person.username} is {role} of {place.words} now."
    return _done(
        request, person, lambda: accounts.grant(person, role, place, **_actor_fields(request)), message, on=place
    )


@require_POST
def end_role_of_person(request: PersonRequest, person_id: int, binding_id: int) -> HttpResponse:
    _only_admins(request)
    binding = get_object_or_404(RoleBinding.objects.select_related("user"), pk=binding_id, user__pk=person_id)
    given = RolesKnownTo(request.user).of(binding)
    if given is None:
        raise Http404
    require_recent_sign_in(request)
    place = given.place
    where = place.words if place else f"a removed {binding.scope}"
    message = f"{binding.user.username} is no longer {binding.role} of {where}."
    on = place or FLEET
    return _done(
        request, binding.user, lambda: accounts.end_role(binding, place, **_actor_fields(request)), message, on=on
    )


@require_POST
def revoke_token(request: PersonRequest, person_id: int, token_id: int) -> HttpResponse:
    _only_admins(request)
    token = get_object_or_404(ApiToken.objects.select_related("user"), pk=token_id, user__pk=person_id)
    message = f"The token “{token.name}” of {token.user.username} is revoked."
    return _done(request, token.user, lambda: revoke(token, **_actor_fields(request)), message, on=FLEET)


@require_POST
def reset_factors(request: PersonRequest, person_id: int) -> HttpResponse:
    """Removes the second factors of a person who lost them."""
    _only_admins(request)
    person = get_object_or_404(User, pk=person_id)
    require_recent_sign_in(request)
    message = f"{person.username} has no second factor now."
    return _done(
        request, person, lambda: remove(person, factors_of(person), **_actor_fields(request)), message, on=FLEET
    )


@require_POST
def end_session(request: PersonRequest, person_id: int, session_id: str) -> HttpResponse:
    _only_admins(request)
    person = get_object_or_404(User, pk=person_id)
    named = sessions_of(person, now=timezone.now()).filter(public_id=session_id)
    return _done(
        request,
        person,
        lambda: end_sessions(person, named, **_actor_fields(request)),
        "The session is ended.",
        on=FLEET,
    )


@require_POST
def end_every_session(request: PersonRequest, person_id: int) -> HttpResponse:
    _only_admins(request)
    person = get_object_or_404(User, pk=person_id)
    every, message = sessions_of(person, now=timezone.now()), f"All sessions of {person.username} are ended."
    return _done(request, person, lambda: end_sessions(person, every, **_actor_fields(request)), message, on=FLEET)


def _done(request: PersonRequest, person: User, act: Callable[[], object], message: str, *, on: Place) -> HttpResponse:
    """Runs one act if the actor may do it on the place, and shows the person's page again."""
    with report_act(request, REFUSALS, done=message):
        require_admin_of(request.user, on)
        act()
    return redirect("person", person_id=person.pk)


def _with_link(request: PersonRequest, person: User) -> HttpResponse:
    accounts.note_password(person, "person.password-link", **_actor_fields(request))
    person.refresh_from_db()
    return _person(request, person, link=request.build_absolute_uri(path_for(person)))


def _actor_fields(request: PersonRequest) -> dict[str, Any]:
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
    request: PersonRequest, person: User, *, link: str = "", sent: QueryDict | None = None, status: int = 200
) -> HttpResponse:
    """Renders the page. `sent` is the refused role form."""
    roles = RolesKnownTo(request.user)
    (row,) = see_people([person], roles)
    offered = [place for place in roles.places.values() if may_administer(request.user, place)]
    context = {
        "person": person,
        "is_single": has_single_sign_on(person),
        "has_factor": has_second_factor(person),
        "link": link,
        "bindings": [(given.binding, given.place, given.place in offered) for given in row.roles],
        "knows_all": roles.are_all,
        "form": RoleForm(sent, places=roles.places.values(), offered=offered),
        "may_see_tokens": may_see_tokens(person, request.user),
        "tokens": tokens_of(person),
        "sessions": sessions_of(person, now=timezone.now())[:SHOWN],
        "this_session": request.session.session_key,
        "now": timezone.now(),
        "why_not": why_not(request.user, Permission.ADMINISTER),
    }
    return render(request, "people/people/person.html", context, status=status)
