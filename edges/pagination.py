from typing import Any

from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from edges.cursors import LONGEST_CURSOR, BadCursor, cursor_after, keys_of, rows_after

LARGEST_OFFSET = 10_000_000  # more rows than any fleet has, and a valid OFFSET of each database
CURSOR = "cursor"


class Pages(LimitOffsetPagination):
    """Pagination by `limit`, and by the cursor in `next`. With `offset`, pages are counted instead.

    An invalid value is refused: a silently different page would hide rows. A view of a large table sets
    `count_at_most`: its `count` by cursor ends there.
    """

    default_limit = 100
    max_limit = 1000
    next_cursor: str | None = None
    is_counted = True  # by `offset`

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.is_counted = "offset" in request.query_params or not isinstance(queryset, QuerySet)
        if self.is_counted:
            if CURSOR in request.query_params:
                raise ValidationError({CURSOR: "Send either a cursor or an offset."})
            return super().paginate_queryset(queryset, request, view) or []
        self.request, self.limit = request, self.get_limit(request)
        most = getattr(view, "count_at_most", None)
        self.count = self.get_count(queryset if most is None else queryset.order_by()[:most])
        keys, cursor = keys_of(queryset), request.query_params.get(CURSOR, "")
        try:
            rows = list(rows_after(queryset, keys, cursor, of=request.path)[: self.limit + 1])
        except BadCursor as error:
            raise ValidationError({CURSOR: "Not a cursor of this list in this order. Start without one."}) from error
        if len(rows) > self.limit:
            self.next_cursor = cursor_after(rows[self.limit - 1], keys, of=request.path)
        return rows[: self.limit]

    def get_next_link(self) -> str | None:
        if self.is_counted:
            return super().get_next_link()
        if self.next_cursor is None or self.request is None:
            return None
        return replace_query_param(self.request.build_absolute_uri(), CURSOR, self.next_cursor)

    def get_previous_link(self) -> str | None:
        return super().get_previous_link() if self.is_counted else None

    def get_limit(self, request: Request) -> int:
        return self._read(request, "limit", least=1, most=self.max_limit, default=self.default_limit)

    def get_offset(self, request: Request) -> int:
        return self._read(request, "offset", least=0, most=LARGEST_OFFSET, default=0)

    def get_schema_operation_parameters(self, view) -> list[dict]:
        bounds = {"limit": (1, self.max_limit, self.default_limit), "offset": (0, LARGEST_OFFSET, 0)}
        numbers = [
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": f"From {least} to {most}.",
                "schema": {"type": "integer", "minimum": least, "maximum": most, "default": default},
            }
            for name, (least, most, default) in bounds.items()
        ]
        cursor = {
            "name": CURSOR,
            "in": "query",
            "required": False,
            "description": "Where the page begins, from `next` of the page before. Opaque.",
            "schema": {"type": "string", "maxLength": LONGEST_CURSOR},
        }
        return [*numbers, cursor]

    @staticmethod
    def _read(request: Request, name: str, *, least: int, most: int, default: int) -> int:
        given = request.query_params.get(name)
        if given is None:
            return default
        # isascii: int() also reads the digits of other scripts
        if not (given.isascii() and given.isdigit() and len(given) <= 8 and least <= int(given) <= most):
            raise ValidationError({name: f"“{given[:20]}” is not a whole number from {least} to {most}."})
        return int(given)
