"""A plan as a document that people keep with their other files: read, compared with a draft, applied, written."""

from rollouts.steering.documents.applying import Applied, Applying, NotAsShown, apply, by_document, look
from rollouts.steering.documents.reading import PlanDocument, StageDocument, read
from rollouts.steering.documents.writing import content_of, write

__all__ = [
    "Applied", "Applying", "NotAsShown", "PlanDocument", "StageDocument", "apply", "by_document", "content_of", "look",
    "read", "write",
]  # fmt: skip
