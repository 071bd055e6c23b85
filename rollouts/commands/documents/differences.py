"""Applies a document: it creates a draft, edits one, or returns why it does neither. It starts nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from edges.concurrent_edits import LENGTH
from edges.digests import digest
from fleet.models import Cluster, DriverObject, Pool
from people.models import AuditEntry, User
from people.rights import Permission, require
from rollouts.commands import plan_drafts
from rollouts.commands.documents.parser import PlanDocument, StageDocument
from rollouts.commands.documents.serializer import content_of, contents
from rollouts.commands.draft_problems import check
from rollouts.commands.plan_drafts import with_approvals
from rollouts.commands.preview import Preview, preview
from rollouts.commands.refusals import BadPlan, OutOfDate
from rollouts.commands.stage_drafts import StageDraft, gates_by_default
from rollouts.components import DRIVER_OBJECT_KINDS
from rollouts.lifecycle import PlanState
from rollouts.models import Plan, Stage
from rollouts.queries.pool_gates import ClusterGates, PoolOptions, gates_in
from wording.numbers import count

MOST_SAID = 5  # differences that one sentence names
FIELDS = {
    "driver_object": "object",
    "to_version": "to",
    "gate_options": "gates",
    "timeout_s": "timeout",
}  # as drafts call it → as documents do


class Applying(StrEnum):
    DRAFTED = "drafted"  # a plan that was not there
    EDITED = "edited"  # the draft that it was applied to before, or read from
    UNCHANGED = "unchanged"  # the draft equals the document


@dataclass(frozen=True)
class Difference:
    """A field of the draft and of the document; None if it is absent."""

    field: str
    drafted: Any
    document: Any

    def __str__(self) -> str:
        return (
            f"{self.field} is {_value_text(self.drafted)} in the draft and {_value_text(self.document)} in the document"
        )


class NotAsShown(OutOfDate):
    """The document or the draft has changed since it was shown."""


@dataclass(frozen=True)
class Applied:
    outcome: Applying
    plan: Plan  # unsaved, where it is only looked at and not drafted yet
    differences: Sequence[Difference]  # between the draft as it was and the document
    preview: Preview | None  # None: it was applied, and the plan has its own preview
    mark: str = ""  # equal for equal changes of the same draft


@dataclass(frozen=True)
class _Wanted:
    plan: Plan  # as it would be, unsaved
    rows: list[Stage]  # unsaved
    stages: list[StageDraft]
    driver_object: DriverObject
    there: Plan | None  # the draft that it edits
    differences: list[Difference]

    @property
    def outcome(self) -> Applying:
        if self.there is None:
            return Applying.DRAFTED
        return Applying.EDITED if self.differences else Applying.UNCHANGED

    @property
    def name(self) -> str:
        """Returns the digest of title, version and stages; drafts made otherwise have none."""
        return digest(contents(self.plan, self.rows))

    @property
    def mark(self) -> str:
        differences = [(each.field, each.drafted, each.document) for each in self.differences]
        return digest([self.there.pk if self.there else None, differences, self.name])[:LENGTH]


def preview_document(document: PlanDocument, *, actor: User, now: datetime) -> Applied:
    """Returns what applying would do, and the preview of the plan. Changes nothing."""
    wanted = _resolve_document(document, actor=actor, now=now)
    told = by_document(preview(wanted.plan, stages=wanted.rows, now=now))
    return Applied(wanted.outcome, wanted.there or wanted.plan, wanted.differences, told, wanted.mark)


def apply(document: PlanDocument, *, actor: User, now: datetime, seen: str = "") -> Applied:
    """Creates the draft, or edits the draft of an earlier application. Applying the same document again changes
    nothing.

    `seen` is the mark of what was shown; empty means that no preview was requested.

    :raises BadPlan: with each field that is wrong
    :raises NotAllowed: without the right to draft in that cluster
    :raises OutOfDate: when somebody has edited the draft otherwise since, with the differences; NotAsShown
    """
    wanted = _resolve_document(document, actor=actor, now=now)
    if seen and seen != wanted.mark:
        raise NotAsShown(
            "The effect of the document has changed since you read it. Nothing was written. Read the effect again."
        )
    plan, name = wanted.there, wanted.name
    if plan is None:
        plan = plan_drafts.draft(
            cluster=wanted.plan.cluster,
            title=wanted.plan.title,
            driver_object=wanted.driver_object,
            to_version=wanted.plan.to_version,
            stages=wanted.stages,
            cordon_affected=wanted.plan.cordon_affected,
            actor=actor,
            document=name,
            now=now,
        )
    elif wanted.differences:
        plan = plan_drafts.edit(
            plan,
            title=wanted.plan.title,
            to_version=wanted.plan.to_version,
            stages=wanted.stages,
            cordon_affected=wanted.plan.cordon_affected,
            expected_revision=plan.revision,
            actor=actor,
            document=name,
            now=now,
        )
    return Applied(wanted.outcome, plan, wanted.differences, None)


def _resolve_document(document: PlanDocument, *, actor: User, now: datetime) -> _Wanted:
    """Resolves the document with a fixed number of queries.

    :raises BadPlan, NotAllowed, OutOfDate: as `apply`
    """
    cluster = _cluster(document, actor)
    driver_object = _driver_object(document, cluster)
    there = _find_draft(document, cluster, driver_object)
    _check_versions(document, driver_object, there)
    pools = {pool.name: pool for pool in Pool.objects.filter(cluster=cluster)}
    stages = with_approvals(cluster, list(_drafts(document, cluster, pools)))
    _check(cluster, document, stages)
    plan = plan_drafts.unsaved(cluster, document.title, driver_object, document.to_version, actor=actor, now=now)
    plan.cordon_affected = document.cordon_affected
    if there is not None:
        plan.pk, plan.author, plan.from_version = there.pk, there.author, there.from_version
    by_key = {pool.pk: pool for pool in pools.values()}
    rows = plan_drafts.stage_rows(plan, stages, now=now)
    for row in rows:
        row.pool = by_key[row.pool_id] if row.pool_id else None
    wanted = _Wanted(plan, rows, stages, driver_object, there, [])
    if there is None:
        return wanted
    plan.edited_at = there.edited_at
    wanted = replace(wanted, differences=differences(_without_plan_id(content_of(there)), contents(plan, rows)))
    if wanted.differences and (reason := _why_not(document, there)):
        raise OutOfDate(f"{reason} {_list_differences(wanted.differences)}")
    return wanted


def _cluster(document: PlanDocument, actor: User) -> Cluster:
    cluster = Cluster.objects.visible_to(actor).filter(name=document.cluster).first()
    if cluster is None:
        raise BadPlan(("cluster", f"Cluster {document.cluster} does not exist, or you may not see it."))
    require(actor, Permission.DRAFT, cluster_id=cluster.pk, where=f"cluster {cluster.name}")
    return cluster


def _driver_object(document: PlanDocument, cluster: Cluster) -> DriverObject:
    if document.kind not in DRIVER_OBJECT_KINDS:
        raise BadPlan(
            (
                "object.kind",
                (
                    f"A {document.kind} has no driver version. Kinds with a driver version: "
                    f"{', '.join(sorted(DRIVER_OBJECT_KINDS))}."
                ),
            )
        )
    found = DriverObject.objects.filter(cluster=cluster, kind=document.kind, name=document.name)
    if (driver_object := found.select_related("cluster").first()) is None:
        raise BadPlan(("object.name", f"{cluster.name} has no {document.kind} {document.name}."))
    return driver_object


def _find_draft(document: PlanDocument, cluster: Cluster, driver_object: DriverObject) -> Plan | None:
    """Returns the draft to edit: the one that the document names, else the newest of the same object and title."""
    plans = Plan.objects.filter(cluster=cluster, object_uid=driver_object.uid).select_related("cluster")
    if document.plan is None:
        title = document.title or plan_drafts.title_for(driver_object, document.to_version)
        return plans.filter(state=PlanState.DRAFT, title=title).order_by("-pk").first()
    plan = plans.filter(pk=document.plan).first()
    if plan is None:
        sentence = f"Plan {document.plan} for {document.name} of {cluster.name} does not exist."
        raise BadPlan(("plan", f"{sentence} Leave out plan and revision to draft a new one."))
    if plan.state != PlanState.DRAFT:
        state = f"Plan {plan.pk} is {plan.state.replace('-', ' ')}, so it is no longer a draft."
        raise OutOfDate(f"{state} Leave out plan and revision to draft a new one.")
    return plan


def _check_versions(document: PlanDocument, driver_object: DriverObject, there: Plan | None) -> None:
    problems = []
    begins = there.from_version if there else driver_object.version
    if document.from_version and document.from_version != begins:
        says = f"{driver_object.name} requests {begins or 'no version'}, not {document.from_version}."
        problems.append(("from", says if there is None else f"The draft starts from {begins or 'no version'}."))
    if document.to_version and document.to_version == driver_object.version:
        problems.append(("to", f"{driver_object.name} already requests {document.to_version}."))
    if problems:
        raise BadPlan(*problems)


def _drafts(document: PlanDocument, cluster: Cluster, pools: Mapping[str, Pool]) -> Iterator[StageDraft]:
    unknown = [
        (f"stages[{at}].pool", f"{cluster.name} has no pool {stage.pool}.")
        for at, stage in enumerate(document.stages)
        if stage.pool and stage.pool not in pools
    ]
    if unknown:
        raise BadPlan(*unknown)
    default = gates_in(cluster) if any(stage.gate_options is None for stage in document.stages) else ClusterGates({})
    for stage in document.stages:
        pool_id, options = pools[stage.pool].pk if stage.pool else None, stage.gate_options
        usual = default.usual_of(pool_id, gates_by_default(cluster.pk, pool_id)) if options is None else options
        yield _draft(stage, pool_id, usual)


def _draft(stage: StageDocument, pool_id: int | None, gate_options: PoolOptions) -> StageDraft:
    return StageDraft(
        name=stage.name,
        kind=stage.kind,
        pool_id=pool_id,
        selector=stage.selector,
        count=stage.count,
        max_unavailable=stage.max_unavailable,
        timeout_s=stage.timeout_s,
        sick_nodes_reason=stage.sick_nodes_reason,
        gate_options=gate_options,
    )


def _check(cluster: Cluster, document: PlanDocument, stages: Sequence[StageDraft]) -> None:
    try:
        check(cluster, document.to_version, stages)
    except BadPlan as refusal:
        raise BadPlan(*((_path(each["field"]), each["sentence"]) for each in refusal.problems)) from refusal


def _path(field: str) -> str:
    """Returns "stages[1].gates.soak" for "stages.1.gate_options.soak"."""
    place, *inside = field.split(".")
    if not inside:
        return FIELDS.get(place, place)
    number, *names = inside
    return ".".join([f"{place}[{number}]", *(FIELDS.get(name, name) for name in names)])


def by_document(told: Preview) -> Preview:
    said = ([replace(check, field=_path(check.field)) for check in those] for those in (told.blockers, told.warnings))
    blockers, warnings = said
    return replace(told, blockers=blockers, warnings=warnings)


def _why_not(document: PlanDocument, there: Plan) -> str:
    if document.revision == there.revision:
        return ""
    if document.revision is not None:
        return (
            f"Plan {there.pk} is at revision {there.revision}, not {document.revision}: {there.last_editor} changed it."
        )
    last = AuditEntry.objects.filter(subject=there.mark, verb__in=("draft", "edit")).order_by("-number").first()
    if last is not None and last.evidence.get("document"):
        return ""
    how = "drafted" if there.revision == 1 else "changed"
    return f"Plan {there.pk}, “{there.title}”, was {how} by {there.last_editor} and not by a document."


def _list_differences(found: Sequence[Difference]) -> str:
    told = "; ".join(str(each) for each in found[:MOST_SAID])
    more = f"; and {count(len(found) - MOST_SAID, 'other difference')}" if len(found) > MOST_SAID else ""
    return f"{told[0].upper()}{told[1:]}{more}. Read the draft's own document, and apply that with your changes."


def differences(drafted: Any, document: Any, at: str = "") -> list[Difference]:
    if isinstance(drafted, dict) and isinstance(document, dict):
        keys = [*drafted, *(key for key in document if key not in drafted)]
        places = [(f"{at}.{key}".removeprefix("."), drafted.get(key), document.get(key)) for key in keys]
    elif isinstance(drafted, list) and isinstance(document, list):
        longest = range(max(len(drafted), len(document)))
        places = [(f"{at}[{n}]", _item_or_none(drafted, n), _item_or_none(document, n)) for n in longest]
    else:
        return [] if drafted == document else [Difference(at, drafted, document)]
    return [each for place, was, now in places for each in differences(was, now, place)]


def _item_or_none(those: Sequence[Any], number: int) -> Any:
    return those[number] if number < len(those) else None


def _without_plan_id(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in {"plan", "revision"}}


def _value_text(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, dict):
        return str(value["name"]) if value.get("name") else "set"
    return f"{value}"[:80]
