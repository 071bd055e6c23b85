"""A plan as a document (YAML or JSON): parsed, compared with a draft, applied, written."""

from rollouts.commands.documents.differences import Applied, Applying, NotAsShown, apply, by_document, preview_document
from rollouts.commands.documents.parser import parse_gates, parse_plan_document
from rollouts.commands.documents.serializer import content_of, gates_as_yaml, write
