"""What the component itself says of its object, its policy and its nodes."""

from collections.abc import Iterable

from rollouts.checks import Check
from rollouts.preflight.subject import Subject


def stands_against(subject: Subject) -> Iterable[Check]:
    return subject.plan.its_component.preflight(subject.driver)


def is_told(subject: Subject) -> Iterable[Check]:
    return subject.plan.its_component.warnings(subject.driver)
