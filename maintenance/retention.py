"""Deletes old decisions of automatic quarantine. Cases and the audit chain stay."""

from datetime import datetime

from django.db.models import Q

from fleet.retention import delete
from maintenance.models import AutomaticDecision, NodeCase


def tidy(*, before: datetime, now: datetime) -> int:  # noqa: ARG001
    """Returns the number of deleted rows. A decision stays while its finding or its case is open.

    An open finding without its decision would be decided again.
    """
    is_over = Q(finding=None) | Q(finding__resolved_at__lt=before)
    old = AutomaticDecision.objects.filter(is_over, at__lt=before)
    return delete(old.exclude(case__in=NodeCase.objects.open()))
