"""Saved views of the GPU table. A view is its address, which other users can open: it contains the filter."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.http import QueryDict

from health.gpus.gpu_filter import GpuFilter
from health.models import GpuView
from people.models import User

MOST = 50  # of one person
LONGEST_NAME = 60
LONGEST_QUERY = 2000
LONGEST_SENT = 32_000  # no filter is: eight values of 253 characters, of twelve each as an address spells the longest


class BadView(Exception):
    """The view cannot be saved, with the reason."""


def views_of(user: User) -> QuerySet[GpuView]:
    """Returns the user's own views. Views of others are not visible."""
    return GpuView.objects.filter(user=user)


def filter_sent(query: str) -> GpuFilter:
    """Returns the known parts of a query string, with or without its question mark."""
    return GpuFilter.read(QueryDict(query[:LONGEST_SENT].removeprefix("?")))


def spelt_view(*, name: str, query: str) -> tuple[str, str]:
    """Returns the name, and the known parts of the filter in canonical form.

    :raises BadView: when they are invalid
    """
    named = " ".join(name.split()) if len(name) <= LONGEST_SENT else ""  # never cut: it might be that of another
    if not named or len(named) > LONGEST_NAME or not named.isprintable():
        raise BadView(f"A view needs a name of at most {LONGEST_NAME} characters.")
    if len(query) > LONGEST_QUERY or len(spelt := filter_sent(query).query()) > LONGEST_QUERY:
        raise BadView("This filter is too long to be saved.")
    return named, spelt


def save_view(user: User, *, name: str, query: str, now: datetime) -> GpuView:
    """Saves a view, and replaces the user's view of that name.

    :raises BadView: when it is invalid
    """
    named, spelt = spelt_view(name=name, query=query)
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)  # two tabs of theirs are not to save more than so many
        own = views_of(user)
        if own.exclude(name=named).count() >= MOST:
            raise BadView(f"You have {MOST} views, and can save no more: delete one first.")
        view, _ = own.update_or_create(user=user, name=named, defaults={"query": spelt, "saved_at": now})
    return view
