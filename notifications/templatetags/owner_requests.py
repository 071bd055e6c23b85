"""The requests to owners that reached nobody, for the pages of operations and cases."""

from typing import Any

from django import template
from django.utils import timezone

from notifications.queries import lost_requests
from operations.models import Operation

register = template.Library()


@register.inclusion_tag("notifications/_lost_requests.html")
def lost_owner_requests(operation: Operation) -> dict[str, Any]:
    return {"lost": lost_requests(operation, now=timezone.now())}
