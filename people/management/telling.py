"""Helpers of the commands about people: find a person or place by name, and build a password link."""

from django.conf import settings
from django.core.management.base import CommandError

from people.models import User
from people.places import Place, all_places
from people.sign_in.access import path_for


def somebody(name: str) -> User:
    match = User.objects.filter(username=User.normalize_username(name.strip())).first()
    if match is None:
        raise CommandError(f"Person {name} does not exist. Add the person with: bin/manage add_person {name}")
    return match


def somewhere(name: str) -> Place:
    places = all_places()
    match = next((place for place in places if place.name == name), None)
    if match is None:
        raise CommandError(
            f"Place {name} does not exist. Roles can be given on: {', '.join(place.name for place in places)}."
        )
    return match


def link_for(person: User) -> str:
    """Returns an absolute link, or only the path when no origin is configured."""
    origin = next(iter(settings.CSRF_TRUSTED_ORIGINS), "")
    return f"{origin}{path_for(person)}"
