from rest_framework.exceptions import ValidationError
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request

LARGEST_OFFSET = 10_000_000  # beyond any fleet, and inside what a database takes for OFFSET


class Pages(LimitOffsetPagination):
    """Pagination by `limit` and `offset`. An invalid value is refused: a silently different page would hide rows."""

    default_limit = 100
    max_limit = 1000

    def get_limit(self, request: Request) -> int:
        return self._read(request, "limit", least=1, most=self.max_limit, default=self.default_limit)

    def get_offset(self, request: Request) -> int:
        return self._read(request, "offset", least=0, most=LARGEST_OFFSET, default=0)

    def get_schema_operation_parameters(self, view) -> list[dict]:
        bounds = {"limit": (1, self.max_limit, self.default_limit), "offset": (0, LARGEST_OFFSET, 0)}
        return [
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": f"From {least} to {most}.",
                "schema": {"type": "integer", "minimum": least, "maximum": most, "default": default},
            }
            for name, (least, most, default) in bounds.items()
        ]

    @staticmethod
    def _read(request: Request, name: str, *, least: int, most: int, default: int) -> int:
        given = request.query_params.get(name)
        if given is None:
            return default
        # isascii: int() also reads the digits of other scripts
        if not (given.isascii() and given.isdigit() and len(given) <= 8 and least <= int(given) <= most):
            raise ValidationError({name: f"“{given[:20]}” is not a whole number from {least} to {most}."})
        return int(given)
