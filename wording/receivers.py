"""The words of a receiver's answer."""

import json


def words_of(body: str) -> str:
    """Returns the receiver's own words: the message and errors of a JSON answer, or its text."""
    try:
        answer = json.loads(body)
    except ValueError:
        return " ".join(body.split())[:300]
    if not isinstance(answer, dict):
        return str(answer)[:300]
    parts = [answer.get(name) for name in ("message", "error", "errors", "detail", "reason", "result")]
    flat = [", ".join(map(str, part)) if isinstance(part, list) else str(part) for part in parts if part]
    return ": ".join(flat)[:300]
