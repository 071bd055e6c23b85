"""The setting of the secrets that key the digests of API tokens."""

import re
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from config.settings.variables import Variables

LINE = re.compile(r"(?P<id>[a-z0-9-]{1,32}):(?P<pepper>\S+)", re.ASCII)
SHORTEST = 50  # characters
RESERVED = "secret-key"  # names QUARTERDECK_SECRET_KEY


def read_token_peppers(env: Variables) -> dict[str, str]:
    """Returns the peppers by id, the newest first: `ID:PEPPER`, with commas, or one a line in the file.

    :raises ImproperlyConfigured: when one is malformed, too short or named twice
    """
    file = env("QUARTERDECK_TOKEN_PEPPERS_FILE", default="")
    text = Path(file).read_text() if file else env("QUARTERDECK_TOKEN_PEPPERS", default="")
    found: dict[str, str] = {}
    for number, line in enumerate(re.split(r"[,\s]+", text.strip()) if text.strip() else [], 1):
        parts = LINE.fullmatch(line)
        if parts is None or len(parts["pepper"]) < SHORTEST or parts["id"] in {*found, RESERVED}:
            raise ImproperlyConfigured(
                f"QUARTERDECK_TOKEN_PEPPERS: entry {number} is not ID:PEPPER with an id of its own (lower-case "
                f"letters, digits and -) and a pepper of at least {SHORTEST} characters."
            )
        found[parts["id"]] = parts["pepper"]
    return found
