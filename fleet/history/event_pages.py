"""The page of the object that a domain event is about."""

from django.urls import reverse

from fleet.models import DomainEvent


def page_of_event(event: DomainEvent) -> str:
    """Returns its address. The pages are those of apps above, by their names."""
    kind, key = event.subject
    return f"{reverse('findings')}?finding={key}" if kind == "finding" else reverse(kind, args=[key])
