from typing import Any

from django.db.models import QuerySet
from django_filters import NumberFilter
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from edges.digits import SENTENCE

EVERYWHERE = {"limit", "offset", "cursor", "format"}
MOST_NAMED = 20  # unknown names that one answer lists


class StrictFilters(DjangoFilterBackend):
    """A filter backend that refuses unknown filters. An ignored typo would return the whole fleet."""

    def filter_queryset(self, request: Request, queryset: QuerySet, view: Any) -> QuerySet:
        shape = self.get_filterset_class(view, queryset)
        known = set(shape.base_filters) if shape else set()
        if unknown := sorted(set(request.query_params) - known - EVERYWHERE):
            known_filters = f"Known filters: {', '.join(sorted(known))}." if known else "This list has no filters."
            raise ValidationError(dict.fromkeys(unknown[:MOST_NAMED], f"Unknown filter. {known_filters}"))
        numbers = [
            name for name, field in (shape.base_filters if shape else {}).items() if isinstance(field, NumberFilter)
        ]
        if foreign := [name for name in numbers if not request.query_params.get(name, "").isascii()]:
            raise ValidationError(dict.fromkeys(foreign, SENTENCE))
        return super().filter_queryset(request, queryset, view)
