"""What the commands about people share: finding who and where is meant, and telling a link."""

from django.conf import settings
from django.core.management.base import CommandError

from people.models import User
from people.places import Place, every_place
from people.sign_in.access import path_for


def somebody(name: str) -> User:
    found = User.objects.filter(username=User.normalize_username(name.strip())).first()
    if found is None:
        raise CommandError(f"There is no {name}. bin/manage add_person {name} makes them.")
    return found


def somewhere(name: str) -> Place:
    places = every_place()
    found = next((place for place in places if place.name == name), None)
    if found is None:
        raise CommandError(f"There is no {name}. Roles can be given on: {', '.join(place.name for place in places)}.")
    return found


def link_for(person: User) -> str:
    """Where nobody said by which name we are reached, only the path of it."""
    origin = next(iter(settings.CSRF_TRUSTED_ORIGINS), "")
    return f"{origin}{path_for(person)}"
