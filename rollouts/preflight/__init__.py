"""What a person must know before a plan starts. To add a check: one new file here, one new line below."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rollouts.checks import Check
from rollouts.preflight import (
    approvers,
    budget,
    busy,
    component,
    extremes,
    measuring,
    restrained,
    standing,
    taking,
    unasked,
    versions,
)
from rollouts.preflight.subject import Subject

Rule = Callable[[Subject], Iterable[Check]]

BLOCKERS: tuple[Rule, ...] = (
    standing.stands_against,
    busy.is_changed_by_others,
    component.stands_against,
    taking.takes_none,
    unasked.must_be_asked,
    approvers.cannot_be_approved,
    versions.barred,
)
WARNINGS: tuple[Rule, ...] = (
    unasked.goes_unasked,
    versions.warned,
    extremes.meaningless,
    measuring.unmeasured,
    component.is_told,
    taking.leaves,
    restrained.restrained,
    budget.is_used_up,
)


@dataclass(frozen=True)
class Checks:
    blockers: list[Check]
    warnings: list[Check]  # the grave ones first


def checks(subject: Subject) -> Checks:
    warnings = sorted(_said(WARNINGS, subject), key=lambda check: not check.is_grave)
    return Checks(_said(BLOCKERS, subject), warnings)


def _said(rules: Iterable[Rule], subject: Subject) -> list[Check]:
    return [check for rule in rules for check in rule(subject)]
