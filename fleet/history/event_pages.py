"""The page of the object that a domain event is about."""

from django.urls import reverse

from fleet.event_kinds import EVENT_KINDS
from fleet.models import DomainEvent


def page_of_event(event: DomainEvent) -> str:
    """Returns its address. The pages are those of apps above, by their names. Blank: of a later version."""
    if event.kind not in EVENT_KINDS:
        return ""
    kind, key = event.subject
    return page_of_finding(key) if kind == "finding" else reverse(kind, args=[key])


def page_of_finding(key: int) -> str:
    return f"{reverse('findings')}?finding={key}"
