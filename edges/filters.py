from typing import Any

from django.db.models import QuerySet
from django_filters import NumberFilter
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from edges.digits import SENTENCE

EVERYWHERE = {"limit", "offset", "format"}
MOST_NAMED = 20  # of those that do not exist, in one answer


class StrictFilters(DjangoFilterBackend):
    """Refuses a filter that does not exist: one misspelt and ignored would answer with the whole fleet."""

    def filter_queryset(self, request: Request, queryset: QuerySet, view: Any) -> QuerySet:
        shape = self.get_filterset_class(view, queryset)
        known = set(shape.base_filters) if shape else set()
        if unknown := sorted(set(request.query_params) - known - EVERYWHERE):
            there_are = f"There are: {', '.join(sorted(known))}." if known else "This list has none."
            raise ValidationError(dict.fromkeys(unknown[:MOST_NAMED], f"There is no such filter. {there_are}"))
        numbers = [
            name for name, each in (shape.base_filters if shape else {}).items() if isinstance(each, NumberFilter)
        ]
        if foreign := [name for name in numbers if not request.query_params.get(name, "").isascii()]:
            raise ValidationError(dict.fromkeys(foreign, SENTENCE))
        return super().filter_queryset(request, queryset, view)
