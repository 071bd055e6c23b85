"""The evidence that a person saw, kept in their session and compared with the present one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from edges.requests import PersonRequest
from rollouts.approvals.bundles import Bundle

KEY = "approvals-looked-at"
MOST = 6  # pages that one person has open: the oldest is forgotten, and must be opened again


@dataclass(frozen=True)
class Look:
    token: str
    at: datetime
    bundle_hash: str
    answers: Mapping[str, str]  # "stage:gate" → answer
    titles: Mapping[str, str]


def remember(request: PersonRequest, bundle: Bundle, *, now: datetime) -> Look:
    titles = {place: shown["title"] for place, shown in bundle.evidence.items()}
    look = Look(uuid4().hex[:16], now, bundle.hash, bundle.content["answers"], titles)
    kept: dict[str, Any] = dict(list(request.session.get(KEY, {}).items())[-(MOST - 1) :])
    kept[look.token] = [now.isoformat(), look.bundle_hash, look.answers, look.titles]
    request.session[KEY] = kept
    return look


def recall(request: PersonRequest, token: str) -> Look | None:
    """Returns the evidence that was shown; None if it is unknown."""
    found = request.session.get(KEY, {}).get(token)
    if found is None:
        return None
    at, bundle_hash, answers, titles = found
    return Look(token, datetime.fromisoformat(at), bundle_hash, answers, titles)
