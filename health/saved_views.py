"""Saved views of tables. A view is its address, which other users can open: it contains the filter."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from django.db import transaction
from django.db.models import QuerySet
from django.http import QueryDict
from django.urls import reverse

from health.models import SavedView
from people.models import User

MOST = 50  # of one person and table
LONGEST_NAME = 60
LONGEST_QUERY = 2000
LONGEST_SENT = 32_000  # no filter is: eight values of 253 characters, of twelve each as an address spells the longest


class BadView(Exception):
    """The view cannot be saved, with the reason."""


class TableFilter(Protocol):
    def query(self) -> str:
        """Returns the filter as the address has it."""


def address_of(table: str, query: str) -> str:
    """Returns the address of a table's page with a filter."""
    return f"{reverse(table)}{f'?{query}' if query else ''}"


F = TypeVar("F", bound=TableFilter)


@dataclass(frozen=True)
class ViewTable(Generic[F]):
    """A table whose filters can be saved."""

    key: str  # of its views, and the URL name of its page
    read: Callable[[QueryDict], F]

    def of(self, user: User) -> QuerySet[SavedView]:
        """Returns the user's own views. Views of others are not visible."""
        return SavedView.objects.filter(user=user, table=self.key)

    def address(self, query: str) -> str:
        return address_of(self.key, query)

    def filter_sent(self, query: str) -> F:
        """Returns the known parts of a query string, with or without its question mark."""
        return self.read(QueryDict(query[:LONGEST_SENT].removeprefix("?")))

    def spelt(self, *, name: str, query: str) -> tuple[str, str]:
        """Returns the name, and the known parts of the filter in canonical form.

        :raises BadView: when they are invalid
        """
        named = " ".join(name.split()) if len(name) <= LONGEST_SENT else ""  # never cut: it might be that of another
        if not named or len(named) > LONGEST_NAME or not named.isprintable():
            raise BadView(f"A view needs a name of at most {LONGEST_NAME} characters.")
        if len(query) > LONGEST_QUERY or len(spelt := self.filter_sent(query).query()) > LONGEST_QUERY:
            raise BadView("This filter is too long to be saved.")
        return named, spelt

    def save(self, user: User, *, name: str, query: str, now: datetime) -> SavedView:
        """Saves a view, and replaces the user's view of that name.

        :raises BadView: when it is invalid
        """
        named, spelt = self.spelt(name=name, query=query)
        with transaction.atomic():
            User.objects.select_for_update().get(pk=user.pk)  # two tabs of one person must not exceed the limit
            own = self.of(user)
            if own.exclude(name=named).count() >= MOST:
                raise BadView(f"You have {MOST} views, which is the maximum. Delete a view first.")
            view, _ = own.update_or_create(
                user=user, table=self.key, name=named, defaults={"query": spelt, "saved_at": now}
            )
        return view
