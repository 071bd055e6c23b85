"""Digests that identify content."""

import hashlib
import json
from typing import Any


def digest(content: Any) -> str:
    """Returns the SHA-256 of the canonical JSON."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
