"""The page that maps groups of the identity provider to roles, for admins of the fleet."""

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from edges.requests import PersonRequest, report_act
from people.models import GroupMapping
from people.places import all_places
from people.rights import NotAllowed, Permission, require
from people.roster import group_mappings
from people.roster.accounts import HasItAlready
from people.sign_in.step_up import require_recent_sign_in
from people.web.roster_forms import GroupMappingForm

MOST = 500  # mappings of the page; REST lists more


@never_cache
@require_GET
def mappings(request: PersonRequest) -> HttpResponse:
    return _page(request, GroupMappingForm(places=all_places()))


@never_cache
@require_POST
def add(request: PersonRequest) -> HttpResponse:
    _only_fleet_admins(request)
    form = GroupMappingForm(request.POST, places=all_places())
    if not form.is_valid():
        return _page(request, form, status=400)
    require_recent_sign_in(request)
    given = form.cleaned_data
    try:
        group_mappings.add(
            given["group"], given["role"], given["place"], actor=request.user.username, now=timezone.now()
        )
    except (HasItAlready, ValidationError) as refusal:
        form.add_error("group", refusal.message if isinstance(refusal, ValidationError) else str(refusal))
        return _page(request, form, status=409)
    return redirect("group-mappings")


@require_POST
def remove(request: PersonRequest, mapping_id: int) -> HttpResponse:
    _only_fleet_admins(request)
    mapping = get_object_or_404(GroupMapping, pk=mapping_id)
    require_recent_sign_in(request)
    done = f"{mapping.group} is no longer {mapping.role}. People keep their roles until their next sign-in."
    with report_act(request, (), done=done):
        group_mappings.remove(mapping, actor=request.user.username, now=timezone.now())
    return redirect("group-mappings")


def _only_fleet_admins(request: PersonRequest) -> None:
    try:
        require(request.user, Permission.ADMINISTER)
    except NotAllowed as refusal:
        raise PermissionDenied(str(refusal)) from refusal


def _page(request: PersonRequest, form: GroupMappingForm, *, status: int = 200) -> HttpResponse:
    _only_fleet_admins(request)
    places = {(place.scope, place.key): place for place in form.places.values()}
    context = {
        "form": form,
        "rows": [(row, places.get((row.scope, row.scope_id))) for row in GroupMapping.objects.all()[:MOST]],
        "oidc": settings.OIDC,
    }
    return render(request, "people/people/group_mappings.html", context, status=status)
