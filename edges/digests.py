"""The name of a piece of content: what two people must have seen to have seen the same."""

import hashlib
import json
from typing import Any


def digest(content: Any) -> str:
    """SHA-256 of the canonical JSON."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
