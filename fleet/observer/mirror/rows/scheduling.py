"""Node affinity and tolerations, within the limits of columns."""

from typing import Any

from fleet.observer.mirror.rows.text import KEY_AT_MOST, VALUE_AT_MOST, fitted
from kube.structs.scheduling import NodeSelectorRequirement, NodeSelectorTerm, Toleration

TOLERATIONS_AT_MOST = 64
TERMS_AT_MOST = 32
VALUES_AT_MOST = 5000  # a term may list nodes individually


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
