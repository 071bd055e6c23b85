"""What a check is about and somebody has written names the field that it is written in, as a refusal of it would."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fleet.models import Node
from fleet.pools.changes import change_pool
from rollouts.checks import Check
from rollouts.commands.documents import by_document, content_of, parse_plan_document, preview_document, write
from rollouts.commands.plan_start import start
from rollouts.commands.preview import preview
from rollouts.commands.refusals import Blocked
from rollouts.commands.stage_drafts import StageDraft
from rollouts.models import StageKind
from tests.make import NOON, a_pool
from tests.rollouts.make import OLD
from tests.rollouts.rows import CANARY, GATES, REST, a_draft

BARE: dict[str, dict[str, Any]] = {"driver_version": {}}


def with_gates(stage: StageDraft, **gates: dict[str, Any]) -> StageDraft:
    return replace(stage, gate_options=GATES | gates)


NOWHERE = StageDraft("Nowhere", StageKind.POOL, selector="kubernetes.io/hostname=gone", gate_options=GATES)
WRONG: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "no node": ({"stages": (CANARY, NOWHERE)}, "empty-stage", "stages.1.selector", "stages[1].selector"),
    "nothing left": ({"stages": (replace(CANARY, count=3), REST)}, "empty-stage", "stages.1", "stages[1]"),
    "more than there are": ({"stages": (replace(CANARY, count=9),)}, "fewer", "stages.0.count", "stages[0].count"),
    "left over": ({"stages": (CANARY,)}, "uncovered", "stages", "stages"),
    "there already": ({"to_version": OLD}, "same-version", "to_version", "to"),
    "no such version": ({"to_version": "999.1.1"}, "unknown-version", "to_version", "to"),
    "unlisted": ({"to_version": "580.999.99"}, "version-unlisted", "to_version", "to"),
    "all at once": (
        {"stages": (CANARY, replace(REST, max_unavailable=2))},
        "meaningless",
        "stages.1.max_unavailable",
        "stages[1].max_unavailable",
    ),
    "too few people": (
        {"stages": (with_gates(CANARY, approval={"needed": 9}), REST)},
        "approvers",
        "stages.0.gate_options.approval",
        "stages[0].gates.approval",
    ),
    "no window": (
        {"stages": (CANARY, with_gates(REST, window={}))},
        "unmeasured",
        "stages.1.gate_options.window",
        "stages[1].gates.window",
    ),
    "no validator": (
        {"stages": (CANARY, with_gates(REST, validator_passed={}))},
        "unmeasured",
        "stages.1.gate_options.validator_passed",
        "stages[1].gates.validator_passed",
    ),
    "a soak of no time": (
        {"stages": (CANARY, with_gates(REST, soak={"duration_s": 0}))},
        "meaningless",
        "stages.1.gate_options.soak",
        "stages[1].gates.soak",
    ),
}


def said(told) -> list[Check]:
    return [*told.blockers, *told.warnings]


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_draft_names_its_field_as_drafts_and_as_documents_call_it(cluster, owner, what: str):
    given, code, field, path = WRONG[what]
    told = preview(a_draft(cluster, owner, **given), now=NOON)

    assert field in [check.field for check in said(told) if check.code == code]
    assert path in [check.field for check in said(by_document(told)) if check.code == code]


@pytest.mark.parametrize("what", WRONG)
def test_each_field_that_is_named_is_in_the_document(cluster, owner, what: str):
    plan = a_draft(cluster, owner, **WRONG[what][0])
    content = content_of(plan)

    for check in said(by_document(preview(plan, now=NOON))):
        if check.field:
            assert is_in(content, check.field), check


def is_in(content: dict[str, Any], path: str) -> bool:
    """A field that may be left out, or an option that is not set, is of what has it."""
    *outside, last = path.replace("[", ".").replace("]", "").split(".")
    inside: Any = content
    for name in outside:
        inside = inside[int(name)] if isinstance(inside, list) else inside[name]
    return int(last) < len(inside) if isinstance(inside, list) else isinstance(inside, dict)


def test_a_check_of_what_nobody_has_written_names_no_field(cluster, owner):
    Node.objects.filter(name="node-2").update(is_unschedulable=True)

    (left_out,) = [check for check in said(preview(a_draft(cluster, owner), now=NOON)) if check.code == "excluded"]

    assert left_out.field == ""


def test_a_start_that_is_barred_names_the_field(cluster, owner):
    plan = a_draft(cluster, owner, to_version="999.1.1")

    with pytest.raises(Blocked) as refusal:
        start(plan, actor=owner, reason="Go.", expected_revision=1, now=NOON)

    assert [(each["code"], each["field"]) for each in refusal.value.blockers] == [("unknown-version", "to_version")]


def test_a_pool_that_changed_under_the_draft_is_named_by_its_stage_also_where_its_document_is_looked_at(cluster, owner):
    pool = a_pool(cluster, "h200")
    plan = a_draft(cluster, owner, stages=(CANARY, replace(REST, pool_id=pool.pk)))
    change_pool(pool, selector="zone=a", actor="bob", now=NOON + timedelta(minutes=1))
    later = NOON + timedelta(minutes=2)

    drafted = [check for check in said(preview(plan, now=later)) if check.code == "pool-changed"]
    looked_at = preview_document(parse_plan_document(write(plan)), actor=owner, now=later)

    assert [check.field for check in drafted] == ["stages.1.pool"]
    assert [check.field for check in said(looked_at.preview) if check.code == "pool-changed"] == ["stages[1].pool"]
