"""Preflight checks of a plan. To add one, add a file here and a line below."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import wraps

from rollouts.checks import Check
from rollouts.preflight import (
    changed_pools,
    extremes,
    measurability,
    missing_telemetry,
    pulled_images,
    restraints,
    stage_coverage,
    start_blockers,
    test_images,
    unapproved_stages,
    versions,
    warm_up,
)
from rollouts.preflight.facts import PreflightFacts
from rollouts.preflight.rules import (
    autoscalers,
    awaited_pods,
    cuda,
    disruption_budgets,
    dra_plugins,
    driver_pods,
    lost_work,
    not_ready,
    nvsentinel,
    operator_down,
    pinned_drivers,
    undeleted_pods,
)
from rollouts.preflight.subject import PreflightSubject

PreflightRule = Callable[[PreflightSubject], Iterable[Check]]


def _as_subject_rule(rule: Callable[[PreflightFacts], Iterable[Check]]) -> PreflightRule:
    """Wraps a pure rule about the facts on nodes."""
    return wraps(rule)(lambda subject: rule(subject.facts))


BLOCKERS: tuple[PreflightRule, ...] = (
    start_blockers.start_checks,
    changed_pools.is_changed_by_others,
    changed_pools.are_unsorted,
    versions.start_checks,
    stage_coverage.takes_none,
    unapproved_stages.missing_approvals,
    unapproved_stages.cannot_be_approved,
    versions.version_blockers,
    restraints.never_opens,
    test_images.are_missing,
    _as_subject_rule(operator_down.is_down),
    _as_subject_rule(lost_work.is_lost),
    _as_subject_rule(disruption_budgets.keep_pods),
    _as_subject_rule(undeleted_pods.fail_their_node),
)
WARNINGS: tuple[PreflightRule, ...] = (
    unapproved_stages.stages_without_approval,
    versions.warned,
    extremes.meaningless,
    measurability.unmeasured,
    measurability.unproven,
    warm_up.load_longer,
    missing_telemetry.is_not_seen,
    versions.is_told,
    stage_coverage.leaves,
    stage_coverage.leaves_sick,
    stage_coverage.takes_sick,
    stage_coverage.takes_fewer,
    stage_coverage.takes_twice,
    changed_pools.have_changed,
    pulled_images.are_pulled,
    restraints.restrained,
    changed_pools.is_used_up,
    changed_pools.domains_are_full,
    _as_subject_rule(disruption_budgets.slow_down),
    _as_subject_rule(undeleted_pods.are_drained),
    _as_subject_rule(awaited_pods.are_waited_for),
    _as_subject_rule(pinned_drivers.pin_the_driver),
    _as_subject_rule(dra_plugins.outlive_the_driver),
    _as_subject_rule(driver_pods.are_missing),
    _as_subject_rule(operator_down.is_unseen),
    _as_subject_rule(not_ready.are_not_ready),
    _as_subject_rule(cuda.check_cuda),
    _as_subject_rule(autoscalers.may_take_nodes),
    _as_subject_rule(nvsentinel.is_watching),
)


# Checks of a draft only: its nodes, its changes, its starter. A sealed plan has passed them.
BEFORE_START: frozenset[PreflightRule] = frozenset(
    {
        start_blockers.start_checks,
        changed_pools.is_changed_by_others,
        changed_pools.are_unsorted,
        versions.start_checks,
        stage_coverage.takes_none,
        unapproved_stages.missing_approvals,
        unapproved_stages.cannot_be_approved,
        stage_coverage.leaves,
        stage_coverage.leaves_sick,
        stage_coverage.takes_fewer,
        stage_coverage.takes_twice,
        changed_pools.have_changed,
    }
)


@dataclass(frozen=True)
class Checks:
    blockers: list[Check]
    warnings: list[Check]  # the grave ones first


def checks(subject: PreflightSubject) -> Checks:
    warnings = sorted(_run_rules(WARNINGS, subject), key=lambda check: not check.is_grave)
    return Checks(_run_rules(BLOCKERS, subject), warnings)


def checks_under_way(subject: PreflightSubject) -> list[Check]:
    """Returns the checks of a plan in progress, without those about its start and without what is in order.

    Blockers become grave warnings and come first.
    """
    barring = _run_rules((rule for rule in BLOCKERS if rule not in BEFORE_START), subject)
    warned = _run_rules((rule for rule in WARNINGS if rule not in BEFORE_START), subject)
    found = [*(replace(check, is_grave=True) for check in barring), *(check for check in warned if not check.is_good)]
    return sorted(found, key=lambda check: not check.is_grave)


def _run_rules(rules: Iterable[PreflightRule], subject: PreflightSubject) -> list[Check]:
    return [check for rule in rules for check in rule(subject)]
