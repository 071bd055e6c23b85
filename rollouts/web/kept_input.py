"""Keeps the input of a refused dialog for the next page."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edges import kept_input
from edges.requests import PersonRequest
from rollouts.models import Plan

OF_A_PLAN = ("reason", "override_reason", "hours", "nodes_each")


@contextmanager
def kept_if_refused(
    request: PersonRequest, plan: Plan, verb: str, refusals: tuple[type[Exception], ...]
) -> Iterator[None]:
    with kept_input.kept_if_refused(request, _input_key(plan), *OF_A_PLAN, refusals=refusals, verb=verb):
        yield


def pop_plan_input(request: PersonRequest, plan: Plan) -> dict[str, Any]:
    """Returns the kept input of this plan; empty if there is none."""
    return kept_input.pop_kept_input(request, _input_key(plan))


def _input_key(plan: Plan) -> str:
    return f"plan-{plan.pk}"
