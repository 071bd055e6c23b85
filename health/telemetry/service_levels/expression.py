"""A PromQL expression of a service level, about the nodes and the period that placeholders name. Pure.

`{{nodes}}` and `{{pods}}` are the values of a label, as in `pod=~"{{pods}}"`; `{{window}}` is the length of a range, as
in `rate(requests_total{pod=~"{{pods}}"}[{{window}}])`. Every selector has one of the first two, and every range is the
third: the value is then of these nodes alone, and of the time since their change. The matchers of the cluster are added
to each selector.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from promql_parser import MatchOp, MatrixSelector, SubqueryExpr, VectorSelector, parse, walk

LONGEST = 1000  # characters
MOST_SELECTORS = 10
NAMES, WINDOW = ("nodes", "pods"), "window"
PART = "quarterdeck"  # the label that tells the parts of an answer apart
VALUE, SAMPLES, NEWEST, CLUSTERS = "value", "samples", "newest", "clusters"
NAME_CLUSTERS = ("cluster", "cluster_name", "k8s_cluster_name")  # labels by which a shared Prometheus tells them apart
_PLACEHOLDER = re.compile(r"\{\{\s*(\w*)\s*\}\}")
_NAMES = re.compile(r"""(=~\s*)(["'`])\{\{\s*(nodes|pods)\s*\}\}\2""")
_RANGE = re.compile(r"\[\s*\{\{\s*window\s*\}\}\s*\]")
_STANDS_FOR = {name: f"every-{name}" for name in NAMES}


class BadExpression(ValueError):
    """The text is no expression of a service level; the sentence says what to write."""


@dataclass(frozen=True)
class ServiceScope:
    """The nodes and the length of time that an expression is about."""

    nodes: Collection[str]
    pods: Collection[str]
    window_s: float
    matchers: str = ""  # label matchers of the cluster, as in cluster="eu-1"


@dataclass(frozen=True)
class Expression:
    text: str
    placeholders: frozenset[str]

    def query(self, scope: ServiceScope) -> str:
        names = {"nodes": _alternatives(scope.nodes), "pods": _alternatives(scope.pods)}
        of_cluster = f",{scope.matchers}" if scope.matchers else ""
        placed = _NAMES.sub(lambda match: f"{match[1]}{match[2]}{names[match[3]]}{match[2]}{of_cluster}", self.text)
        return _RANGE.sub(f"[{scope.window_s:.0f}s]", placed)

    def selectors(self, scope: ServiceScope) -> list[str]:
        """Returns the selectors without their ranges, each once."""
        return list(
            dict.fromkeys(str(each) for each in _nodes_of(self.query(scope)) if isinstance(each, VectorSelector))
        )


@lru_cache(maxsize=256)
def read_expression(text: str) -> Expression:
    """Returns the expression.

    :raises BadExpression: with the error and what to write instead
    """
    if len(text) > LONGEST:
        raise BadExpression(f"An expression has at most {LONGEST} characters; this one has {len(text)}.")
    used = frozenset(_PLACEHOLDER.findall(text))
    if unknown := used - {*NAMES, WINDOW}:
        raise BadExpression(
            f"{{{{{sorted(unknown)[0]}}}}} is unknown. Write {{{{nodes}}}}, {{{{pods}}}} or {{{{window}}}}."
        )
    parsed = _nodes_of(_RANGE.sub("[1m]", _NAMES.sub(lambda match: f'=~"{_STANDS_FOR[match[3]]}"', text)))
    selectors = [each for each in parsed if isinstance(each, VectorSelector)]
    if not selectors or len(selectors) > MOST_SELECTORS:
        raise BadExpression(
            f"An expression selects from 1 to {MOST_SELECTORS} metrics; this one selects {len(selectors)}."
        )
    for selector in selectors:
        _check_selector(selector)
    if any(isinstance(each, SubqueryExpr) for each in parsed):
        raise BadExpression("A subquery can read samples from before the change. Write a range such as [{{window}}].")
    if sum(isinstance(each, MatrixSelector) for each in parsed) != len(_RANGE.findall(text)):
        raise BadExpression("Write [{{window}}] for every range, so that no sample is from before the change.")
    return Expression(text, used & frozenset(NAMES))


def measurement(value: Expression, samples: Expression | None, scope: ServiceScope) -> str:
    """Returns one query with a series for the value, the samples, the newest sample and the number of clusters.

    `samples` counts what the value rests on, such as requests; without it, the scrapes in the window count. Without
    matchers of the cluster, the clusters of all scrape targets count: a node of the same name may be another cluster's.
    """
    selectors = value.selectors(scope)
    parts = [_labelled_part(VALUE, value.query(scope))]
    if samples is not None:
        parts.append(_labelled_part(SAMPLES, samples.query(scope)))
    for place, selector in enumerate(selectors):
        if samples is None:
            parts.append(
                _labelled_part(f"{SAMPLES}{place}", f"max(count_over_time({selector}[{scope.window_s:.0f}s]))")
            )
        parts.append(_labelled_part(f"{NEWEST}{place}", f"max(timestamp({selector}))"))
        parts.append(_labelled_part(f"{CLUSTERS}{place}", f"count(group by (cluster) ({selector}))"))
    if not scope.matchers:
        parts += [
            _labelled_part(f"{CLUSTERS} by {label}", f'count(group by ({label}) (up{{{label}!=""}}))')
            for label in NAME_CLUSTERS
        ]
    return " or ".join(parts)


def _labelled_part(name: str, query: str) -> str:
    return f'label_replace({query}, "{PART}", "{name}", "", "")'


def _nodes_of(text: str) -> list[object]:
    found: list[object] = []
    try:
        walk(parse(text), found.append)
    except ValueError as error:
        raise BadExpression(f"This is not valid PromQL: {error}.") from error
    return found


def _check_selector(selector: VectorSelector) -> None:
    placed = [
        each for each in selector.matchers.matchers if each.op == MatchOp.Re and each.value in _STANDS_FOR.values()
    ]
    if not placed or selector.matchers.or_matchers:
        name = selector.name or str(selector)[:60]
        raise BadExpression(
            f'Write {name}{{pod=~"{{{{pods}}}}"}}, or node=~"{{{{nodes}}}}". Otherwise the query would read every node.'
        )
    if selector.offset is not None or selector.at is not None:
        raise BadExpression("offset and @ can read samples from before the change. Leave them out.")


def _alternatives(values: Iterable[str]) -> str:
    return "|".join(sorted(value.replace(".", "[.]") for value in values))
