"""The preview of a plan from rows of now. It changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from fleet.drivers.mode import OWN_POLICIES_FROM
from fleet.models import DriverObject
from operations.failure_domains import Budgets
from operations.tenants.disruption_cost import Harm, costs
from rollouts.checks import Check
from rollouts.commands.duration import StageTime
from rollouts.commands.forecast import (
    Forecast,
    forecast_of,
    node_times,
    past_rounds_for,
    sealed_forecast,
    wave_time,
)
from rollouts.commands.forecast_rows import ForecastOnPage, PlanOutcome, outcome_of, shown_forecast
from rollouts.commands.plan_drafts import is_large
from rollouts.commands.refusals import ObjectGone
from rollouts.commands.remaining_time import stage_time
from rollouts.components.driver import DriverFacts
from rollouts.components.isolated_canary import IsolatedCanary, isolated_canary
from rollouts.lifecycle import PlanState
from rollouts.models import Plan, Stage
from rollouts.node_order.node_selection import at_once, bound_in_percent, bound_on_failure_rate, nodes_for
from rollouts.preflight import checks
from rollouts.preflight.driver_facts import driver_facts
from rollouts.preflight.live_checks.latest import LiveOnPage, live_on_page
from rollouts.preflight.picks import Picks, forward, pick
from rollouts.preflight.stage_coverage import canary_and_others, uncovered_sentences
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.change_times import NodeTime
from rollouts.queries.driver_nodes import nodes_of, object_uid
from wording.durations import spell
from wording.instants import to_the_second
from wording.numbers import are, count, either

LIKELY = 0.1  # a driver that fails on fewer nodes than this is no surprise to a canary of ordinary size


@dataclass(frozen=True)
class StagePreview:
    name: str
    kind: str
    targets: list[str]
    by_wave: list[tuple[str, ...]]  # the order in which they go, where each wave has all of its room
    at_once: int  # the most that a wave may have: by the stage's budget, the operator, or the budgets of domains
    max_unavailable: int
    gates: list[tuple[str, dict]]
    harms: list[tuple[str, Harm]]  # nodes in release order, with the harm that explains the order
    limit: str = ""  # sentence about the limit of the wave's size

    @property
    def costs(self) -> str:
        return costs([harm for _, harm in self.harms])

    @property
    def waves(self) -> int:
        return len(self.by_wave)

    @property
    def waves_reason(self) -> str:
        smaller = "Changing and broken nodes, failure domains, and the operator's free slots"
        return f"{self.limit} {smaller} make waves smaller."


class StartVerdict(StrEnum):
    BARRED = "barred"
    NEEDS_REASON = "needs-reason"
    GRAVE = "grave"  # the rows bar nothing; some warnings, or the last live check, are as red as blockers
    FREE = "free"


@dataclass(frozen=True)
class Preview:
    blockers: list[Check]
    warnings: list[Check]
    stages: list[StagePreview]
    uncovered: list[str]  # nodes of the object that no stage takes: they stay held
    excluded: list[tuple[str, str]]  # (node, why it is not taken)
    forecast: Forecast
    canary_shows: str
    canary_failure_rate_at_most: float  # if none of its nodes fails: the upper 95 % confidence bound, 0 to 1
    cohorts_uncovered: list[str]
    isolated_canary: IsolatedCanary
    live: LiveOnPage | None  # last live check of its cluster; None: none
    seen_at: datetime

    @property
    def grave(self) -> list[Check]:
        return [check for check in self.warnings if check.is_grave]

    @property
    def verdict(self) -> StartVerdict:
        if self.blockers:
            return (
                StartVerdict.NEEDS_REASON
                if all(one.may_be_overridden for one in self.blockers)
                else StartVerdict.BARRED
            )
        return StartVerdict.GRAVE if self.grave or self.live_objection else StartVerdict.FREE

    @property
    def live_objection(self) -> str:
        """Returns that the last live check of this draft objected, with its time; empty if it did not."""
        live = self.live
        if live is None or live.row.answered_at is None or live.is_of_another_revision or not live.bars:
            return ""
        number = sum(answer.bars for answer in live.answers)
        return (
            f"The live check of {to_the_second(live.row.answered_at)} spoke against the start "
            f"({count(number, 'answer')}). Each start repeats it."
        )

    @property
    def verdict_sentence(self) -> str:
        blockers, grave = len(self.blockers), len(self.grave)
        barring = sum(not one.may_be_overridden for one in self.blockers)
        match self.verdict:
            case StartVerdict.BARRED:
                return f"{count(barring, 'blocker')} {either(barring, 'bars', 'bar')} the start."
            case StartVerdict.NEEDS_REASON:
                speaks = either(blockers, "speaks", "speak")
                return f"{count(blockers, 'check')} {speaks} against the start. It needs a reason, which approvers see."
            case StartVerdict.GRAVE if self.live_objection:
                return self.live_objection
            case StartVerdict.GRAVE:
                them = either(grave, "it", "them")
                return f"Nothing bars the start. {count(grave, 'warning')} {are(grave)} grave: read {them} first."
        return f"Nothing bars the start{'; read the warnings first' if self.warnings else ''}."

    @property
    def forecast_on_page(self) -> ForecastOnPage:
        return shown_forecast(sealed_forecast(self.forecast, now=self.seen_at), PlanOutcome(), is_sealed=False)


def preview(plan: Plan, *, stages: Sequence[Stage] | None = None, now: datetime) -> Preview:
    """Returns the preview. `stages` are unsaved ones that replace the plan's own."""
    nodes = list(nodes_of(plan).prefetch_related("pools"))
    stages = forward(plan) if stages is None else stages
    picks = pick(stages, nodes, now=now)
    facts = driver_facts(plan, _driver_object(plan), nodes)
    subject = PreflightSubject(plan, stages, nodes, picks, facts, now)
    said = checks(subject)
    previews = [_stage_preview(stage, picks, facts, subject.budgets) for stage in stages]
    past = past_rounds_for(subject)
    times = node_times(picks.nodes, {node.uid: picks.candidates[node.uid].facts for node in picks.nodes}, past)
    stage_times = [_stage_time(stage, shown, times) for stage, shown in zip(stages, previews, strict=True)]
    forecast = forecast_of(subject, stage_times, [shown.by_wave for shown in previews], past)
    return Preview(
        blockers=said.blockers,
        warnings=[*said.warnings, *is_large(len(picks.nodes), forecast.duration)],
        stages=previews,
        uncovered=sorted(node.name for node in picks.uncovered),
        excluded=picks.excluded,
        forecast=forecast,
        canary_shows=f"{_what_canaries_show(picks)} {_onset(stages)}".strip(),
        canary_failure_rate_at_most=bound_on_failure_rate(len(canary_and_others(picks)[0])),
        cohorts_uncovered=uncovered_sentences(picks),
        isolated_canary=_isolated_canary(subject),
        live=live_on_page(plan),
        seen_at=now,
    )


def forecast_on_page(plan: Plan, *, now: datetime) -> ForecastOnPage | None:
    """Returns the forecast with its outcome. None: the plan was started without one, or was discarded.

    A draft costs as many queries as a preview, a started plan six.

    :raises ObjectGone: when the cluster no longer has the object of a draft
    """
    if plan.state == PlanState.DRAFT:
        return preview(plan, now=now).forecast_on_page
    sealed = plan.sealed.get("forecast")
    return shown_forecast(sealed, outcome_of(plan, now=now), is_sealed=True) if sealed else None


def _driver_object(plan: Plan) -> DriverObject:
    """Returns the driver object.

    :raises ObjectGone: when the cluster no longer has the object
    """
    driver_object = DriverObject.objects.filter(cluster=plan.cluster_id, uid=object_uid(plan)).first()
    if driver_object is None:
        gone = f"{plan.cluster.name} no longer shows {plan.object_kind} {plan.object_name}."
        raise ObjectGone(f"{gone} Draft a plan for the present nodes.")
    return driver_object


def _stage_preview(stage: Stage, picks: Picks, facts: DriverFacts, budgets: Budgets) -> StagePreview:
    targets = [node.name for node in picks.by_stage[stage.index]]
    allowed = at_once(stage.max_unavailable, targets, facts.upgrade_policy, budgets, fleet=facts.nodes)
    return StagePreview(
        name=stage.name,
        kind=stage.kind,
        targets=targets,
        by_wave=list(allowed.by_wave),
        at_once=allowed.nodes,
        max_unavailable=stage.max_unavailable,
        # By name: PostgreSQL gives the keys of JSON back in an order of its own.
        gates=[(gate.title, dict(sorted(stage.gate_options.get(gate.key, {}).items()))) for gate in stage.gates],
        harms=[(name, picks.harms[name]) for name in targets],
        limit=allowed.reason,
    )


def _stage_time(stage: Stage, shown: StagePreview, times: Mapping[str, NodeTime]) -> StageTime:
    found = stage_time(stage, len(shown.targets), shown.at_once, in_waves=shown.waves)
    a_wave = wave_time(shown.by_wave, times)
    return found if a_wave is None else replace(found, a_wave=a_wave)


def _what_canaries_show(picks: Picks) -> str:
    """Returns what failure rate the canary can exclude, and how many nodes a stricter proof needs."""
    canary, others = canary_and_others(picks)
    nodes, wanted = len(canary), nodes_for(LIKELY)
    most = bound_in_percent(nodes)
    if nodes >= wanted:
        return f"If none of {nodes} canary nodes fails, at most {most} % of all nodes would (95 % confidence)."
    aim = f"For 95 % confidence that under {LIKELY * 100:.0f} % of all nodes would fail,"
    all_of_them = nodes + len(others)
    takes = f"use {wanted} canary nodes" if wanted < all_of_them else f"{wanted} canary nodes must not"
    has = "" if wanted < all_of_them else f", and the plan has {count(all_of_them, 'node')}"
    return f"{aim} {takes}{has}; {count(nodes, 'node')} can only show that at most {most} % would."


def _onset(stages: Sequence[Stage]) -> str:
    """Returns a note that a canary shows only problems of its kinds of nodes, within its soak (Z29)."""
    if not stages:
        return ""
    soak = stage_time(stages[0], 0, 1).soak
    if not soak:
        return "The canary has no soak, so it shows only immediate problems."
    return f"The canary's soak of {spell(soak)} cannot show problems that begin later."


def _isolated_canary(subject: PreflightSubject) -> IsolatedCanary:
    plan, objects = subject.plan, subject.driver_objects
    canary, _ = canary_and_others(subject.picks)
    return isolated_canary(
        plan.object_name,
        kind=plan.object_kind,
        is_fallback=any(each.is_fallback and each.name == plan.object_name for each in objects),
        has_own_policies=subject.has_own_policies,
        since=OWN_POLICIES_FROM,
        to_version=plan.to_version,
        nodes=[node.name for node in canary],
    )
