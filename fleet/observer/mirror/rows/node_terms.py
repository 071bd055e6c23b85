"""Node affinity and tolerations, within the limits of columns."""

from collections.abc import Sequence
from typing import Any

from fleet.observer.mirror.rows.text import KEY_AT_MOST, VALUE_AT_MOST, fitted
from kube.structs.node_affinity import NodeSelectorRequirement, NodeSelectorTerm, Toleration

TOLERATIONS_AT_MOST = 256
TERMS_AT_MOST = 256
VALUES_AT_MOST = 5000  # a term may list nodes individually


def are_whole(terms: Sequence[NodeSelectorTerm]) -> bool:
    """Tells whether the stored terms are complete."""
    requirements = [each for term in terms for each in (*(term.match_expressions or ()), *(term.match_fields or ()))]
    sizes = (len(part or ()) for term in terms for part in (term.match_expressions, term.match_fields))
    return (
        len(terms) <= TERMS_AT_MOST
        and all(size <= TERMS_AT_MOST for size in sizes)
        and all(len(each.values or ()) <= VALUES_AT_MOST for each in requirements)
    )


def term_of(term: NodeSelectorTerm) -> list[dict[str, Any]]:
    labels = [_expression(each) for each in (term.match_expressions or [])[:TERMS_AT_MOST]]
    return labels + [_expression(each) | {"field": True} for each in (term.match_fields or [])[:TERMS_AT_MOST]]


def _expression(said: NodeSelectorRequirement) -> dict[str, Any]:
    values = [fitted(value, VALUE_AT_MOST) for value in (said.values or [])[:VALUES_AT_MOST]]
    return {"key": fitted(said.key, KEY_AT_MOST), "operator": fitted(said.operator, 16), "values": values}


def toleration_of(toleration: Toleration) -> dict[str, str]:
    return {
        "key": fitted(toleration.key, KEY_AT_MOST),
        "operator": fitted(toleration.operator, 16) or "Equal",
        "value": fitted(toleration.value, VALUE_AT_MOST),
        "effect": fitted(toleration.effect, 32),
    }
