"""The channels that export decisions, for the page of the audit trail."""

from typing import Any

from django import template

from notifications.queries import audit_exports

register = template.Library()


@register.inclusion_tag("notifications/_audit_exports.html")
def audit_export_states() -> dict[str, Any]:
    return {"exports": audit_exports()}
