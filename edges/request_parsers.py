import json
from typing import Any

from rest_framework.exceptions import APIException, ParseError, ValidationError
from rest_framework.parsers import JSONParser

LARGEST_BODY_BYTES = 1_048_576  # the longest honest body is a plan of a few stages
MOST_VALUES = 10_000  # of which such a plan has two thousand
DEEPEST = 20
PLACE_AT_MOST = 100  # characters of the path that an answer names


class TooLarge(APIException):
    status_code = 413
    default_code = "too-large"
    default_detail = f"The body is larger than {LARGEST_BODY_BYTES} bytes."


class SmallJSONParser(JSONParser):
    """JSON with a limit: Django's own does not hold for a body that is read as a stream."""

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
        look_through(content)
        return content


def look_through(content: Any) -> None:
    """Once, before any field is checked: how much there is, how deep, and whether every text is one.

    :raises APIException: with what no body of ours has
    """
    left, number = [(content, 1, "")], 0
    while left:
        value, depth, place = left.pop()
        number += 1
        if number > MOST_VALUES:
            raise ParseError(f"The body has more than {MOST_VALUES} values.")
        if depth > DEEPEST:
            raise ParseError("The body is nested too deeply.")
        if isinstance(value, str):
            _refuse_no_text(value, place)
        elif isinstance(value, dict | list) and len(value) > MOST_VALUES:
            raise ParseError(f"The body has more than {MOST_VALUES} values.")
        elif isinstance(value, dict):
            left += [(name, depth + 1, place) for name in value]
            left += [(each, depth + 1, _inside(place, name)) for name, each in value.items()]
        elif isinstance(value, list):
            left += [(each, depth + 1, _inside(place, at)) for at, each in enumerate(value)]


def _inside(place: str, name: object) -> str:
    return f"{place}.{name}"[:PLACE_AT_MOST].removeprefix(".")


def _refuse_no_text(text: str, place: str) -> None:
    """Half a surrogate pair, which JSON can spell, is no character that UTF-8 can carry."""
    if "\x00" in text:
        raise ValidationError({place or "non_field_errors": "This is no text: there is a NUL character in it."})
    try:
        text.encode()
    except UnicodeEncodeError as error:
        sentence = "This is no text: there is half a surrogate pair in it."
        raise ValidationError({place or "non_field_errors": sentence}) from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
