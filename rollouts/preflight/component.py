"""The component's own checks of its object, policy and nodes."""

from collections.abc import Iterable

from rollouts.checks import Check
from rollouts.preflight.subject import PreflightSubject


def stands_against(subject: PreflightSubject) -> Iterable[Check]:
    return subject.plan.its_component.preflight(subject.driver)


def is_told(subject: PreflightSubject) -> Iterable[Check]:
    return subject.plan.its_component.warnings(subject.driver)
