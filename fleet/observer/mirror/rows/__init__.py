"""What a row says of an object: one pure file a kind, struct in, columns out."""

from typing import Any

Columns = dict[str, Any]  # what a row says, by column
