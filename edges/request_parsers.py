import json
from typing import Any

from rest_framework.exceptions import APIException, ParseError, ValidationError
from rest_framework.parsers import JSONParser

LARGEST_BODY_BYTES = 1_048_576  # the longest valid body is a plan of a few stages
MOST_VALUES = 10_000  # such a plan has two thousand
DEEPEST = 20
PLACE_AT_MOST = 100  # characters of a path in an error


class TooLarge(APIException):
    status_code = 413
    default_code = "too-large"
    default_detail = f"The body is larger than {LARGEST_BODY_BYTES} bytes."


class SmallJSONParser(JSONParser):
    """A JSON parser with a size limit. Django's own limit does not apply to a body that is read as a stream."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        body = stream.read(LARGEST_BODY_BYTES + 1)
        if len(body) > LARGEST_BODY_BYTES:
            raise TooLarge
        try:
            content = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        except RecursionError as error:
            raise ParseError("The body is nested too deeply.") from error
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}.") from error
        check_bounds(content)
        return content


def check_bounds(content: Any) -> None:
    """Checks the number of values, the depth and every text before any field is validated.

    :raises APIException: when the body exceeds a limit or has an invalid text
    """
    pending, number = [(content, 1, "")], 0
    while pending:
        value, depth, path = pending.pop()
        number += 1
        if number > MOST_VALUES:
            raise ParseError(f"The body has more than {MOST_VALUES} values.")
        if depth > DEEPEST:
            raise ParseError("The body is nested too deeply.")
        if isinstance(value, str):
            _refuse_no_text(value, path)
        elif isinstance(value, dict | list) and len(value) > MOST_VALUES:
            raise ParseError(f"The body has more than {MOST_VALUES} values.")
        elif isinstance(value, dict):
            pending += [(name, depth + 1, path) for name in value]
            pending += [(item, depth + 1, _inside(path, name)) for name, item in value.items()]
        elif isinstance(value, list):
            pending += [(item, depth + 1, _inside(path, position)) for position, item in enumerate(value)]


def _inside(path: str, name: object) -> str:
    return f"{path}.{name}"[:PLACE_AT_MOST].removeprefix(".")


def _refuse_no_text(text: str, path: str) -> None:
    """Refuses texts that UTF-8 cannot encode: JSON can spell half a surrogate pair."""
    if "\x00" in text:
        raise ValidationError({path or "non_field_errors": "The text has a NUL character."})
    try:
        text.encode()
    except UnicodeEncodeError as error:
        sentence = "The text has half a surrogate pair."
        raise ValidationError({path or "non_field_errors": sentence}) from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
