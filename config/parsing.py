import json
from typing import Any

from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser

LARGEST_BODY_BYTES = 1_048_576  # the longest honest body is a plan of a few stages


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
            return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        except RecursionError as error:
            raise ParseError("The body is nested too deeply.") from error
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}.") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
