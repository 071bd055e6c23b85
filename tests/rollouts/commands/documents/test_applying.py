import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from fleet.models import Cluster, DriverObject
from people.models import AuditEntry
from people.rights import NotAllowed
from rollouts.commands import plan_drafts
from rollouts.commands.documents import (
    Applying,
    apply,
    by_document,
    content_of,
    parse_plan_document,
    preview_document,
    write,
)
from rollouts.commands.plan_drafts import with_approvals
from rollouts.commands.preview import preview
from rollouts.commands.refusals import BadPlan, OutOfDate
from rollouts.commands.stage_drafts import StageDraft
from rollouts.lifecycle import PlanState
from rollouts.models import Plan, StageKind
from tests.make import NOON, a_pool, a_user
from tests.rollouts.make import NEW, OLD
from tests.rollouts.rows import a_draft, a_driver_cluster, in_state


@pytest.fixture
def text(cluster) -> str:
    return f"""\
cluster: {cluster.name}
object: {{kind: NVIDIADriver, name: h200}}
from: {OLD}
to: {NEW}
stages:
- {{name: Canary, kind: canary, count: 1, gates: {{driver_version: {{}}, soak: {{duration: 30m}}}}}}
- {{name: Rest, kind: pool, max_unavailable: 2}}
"""


def applied(text: str, owner, **given):
    return apply(parse_plan_document(text), actor=owner, now=NOON, **given)


def test_a_document_drafts_a_plan_and_starts_nothing(text, owner):
    done = applied(text, owner)

    plan = Plan.objects.get()
    assert (done.outcome, done.plan) == (Applying.DRAFTED, plan)
    assert (plan.state, plan.title, plan.author) == (PlanState.DRAFT, f"h200 to {NEW}", "owner")
    assert [stage.name for stage in plan.stages.all()] == ["Canary", "Rest", "Rollback"]
    assert plan.stages.first().gate_options["soak"] == {"duration_s": 1800}


def test_a_look_shows_what_it_would_do_and_writes_nothing(text, owner, django_assert_max_num_queries):
    document = parse_plan_document(text)

    with django_assert_max_num_queries(55):
        shown = preview_document(document, actor=owner, now=NOON)

    assert shown.outcome == Applying.DRAFTED
    assert [len(stage.targets) for stage in shown.preview.stages] == [1, 2]
    assert not Plan.objects.exists()
    assert not AuditEntry.objects.filter(verb="draft").exists()


def test_a_look_shows_what_the_plan_itself_shows_once_it_is_drafted(text, owner):
    shown = preview_document(parse_plan_document(text), actor=owner, now=NOON)

    drafted = applied(text, owner).plan

    assert shown.preview == preview_document(parse_plan_document(text), actor=owner, now=NOON).preview
    assert shown.preview == by_document(preview(drafted, now=NOON))


def test_the_same_document_again_changes_nothing(text, owner):
    plan = applied(text, owner).plan

    again = applied(text, owner)

    assert (again.outcome, again.plan, again.plan.revision) == (Applying.UNCHANGED, plan, 1)


def test_another_version_of_it_edits_the_same_draft(text, owner):
    titled = text + "title: October\ncordon_affected: true\n"
    plan = applied(titled, owner).plan

    done = applied(titled.replace("max_unavailable: 2", "max_unavailable: 1").replace(NEW, "580.126.20"), owner)

    assert (done.outcome, done.plan.pk, done.plan.revision) == (Applying.EDITED, plan.pk, 2)
    assert [str(each) for each in done.differences] == [
        f"to is {NEW} in the draft and 580.126.20 in the document",
        "stages[1].max_unavailable is 2 in the draft and 1 in the document",
    ]
    assert applied(titled.replace("max_unavailable: 2", "max_unavailable: 1").replace(NEW, "580.126.20"), owner)


def test_what_was_changed_by_hand_since_is_not_overwritten(text, owner):
    plan = applied(text, owner).plan
    plan_drafts.edit(
        plan, title="", to_version=NEW, stages=plan_drafts.stages_of(plan)[:1], expected_revision=1,
        actor=a_user("eve"), now=NOON,
    )  # fmt: skip

    with pytest.raises(OutOfDate, match=r"by eve and not by a document\. Stages\[1\] is missing in the draft"):
        applied(text, owner)
    with pytest.raises(OutOfDate):
        preview_document(parse_plan_document(text), actor=owner, now=NOON)

    assert Plan.objects.get().revision == 2


def test_a_document_read_from_a_draft_edits_that_draft_even_its_title(cluster, owner):
    plan = a_draft(cluster, owner)

    done = applied(write(plan).replace(plan.title, "Another title"), owner)

    assert (done.outcome, done.plan.pk, done.plan.title) == (Applying.EDITED, plan.pk, "Another title")


def test_a_document_of_an_earlier_revision_loses(cluster, owner):
    plan = a_draft(cluster, owner)
    before = write(plan)
    plan_drafts.edit(
        plan, title="Now", to_version=NEW, stages=plan_drafts.stages_of(plan), expected_revision=1, actor=a_user("eve"),
        now=NOON,
    )  # fmt: skip

    with pytest.raises(OutOfDate, match=r"not 1: eve changed it\. Title is Now in the draft and h200"):
        applied(before, owner)


def test_who_is_second_of_two_at_once_loses(cluster, owner, monkeypatch):
    plan = a_draft(cluster, owner)
    document = parse_plan_document(write(plan).replace(plan.title, "Mine"))
    edit = plan_drafts.edit

    def slow(*args, **given):
        Plan.objects.filter(pk=plan.pk).update(revision=2, title="Theirs")
        return edit(*args, **given)

    monkeypatch.setattr(plan_drafts, "edit", slow)
    with pytest.raises(OutOfDate):
        apply(document, actor=owner, now=NOON)

    assert Plan.objects.get().title == "Theirs"


def test_a_plan_that_has_started_is_no_draft_to_edit(cluster, owner):
    plan = a_draft(cluster, owner)
    text = write(plan)
    in_state(plan, PlanState.PROMOTING)

    with pytest.raises(OutOfDate, match=r"is promoting, so it is no longer a draft\. Leave out plan and revision"):
        applied(text, owner)

    assert "revision" not in content_of(plan)


REFUSED = {
    "cluster": ("cluster: {}", "cluster: west", "cluster"),
    "object": ("name: h200", "name: gone", "object.name"),
    "kind": ("kind: NVIDIADriver", "kind: GPUCluster", "object.kind"),
    "from": (f"from: {OLD}", "from: 1.2.3", "from"),
    "there already": (f"to: {NEW}", f"to: {OLD}", "to"),
    "no version": (f"to: {NEW}", "to: latest", "to"),
    "pool": ("max_unavailable: 2", "pool: gone", "stages[1].pool"),
    "selector": ("max_unavailable: 2", "selector: a==b==c", "stages[1].selector"),
    "wait_timeout": ("kind: pool", "timeout: 1s, kind: pool", "stages[1].timeout"),
    "no canary": ("kind: canary", "kind: pool", "stages"),
    "gates that never pass": ("driver_version: {{}}, ", "", "stages[0].gates"),
    "a plan of nobody": ("cluster: {}", "plan: 99\ncluster: {}", "plan"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_names_its_field(text, cluster, owner, what: str):
    was, becomes, field = REFUSED[what]
    was, becomes = was.format(cluster.name), becomes.format(cluster.name)
    assert was in text

    with pytest.raises(BadPlan) as refusal:
        applied(text.replace(was, becomes), owner)

    assert [each["field"] for each in refusal.value.problems] == [field]
    assert not Plan.objects.exists()


def test_only_who_may_draft_there_applies_or_looks(text):
    viewer, stranger = a_user("bob", role="viewer"), a_user("stranger")

    for what in (apply, preview_document):
        with pytest.raises(NotAllowed):
            what(parse_plan_document(text), actor=viewer, now=NOON)
        with pytest.raises(BadPlan, match="does not exist, or you may not see it"):
            what(parse_plan_document(text), actor=stranger, now=NOON)


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=20).map(str.strip)
lengths = st.integers(60, 600_000) | st.floats(60, 600_000).map(lambda seconds: round(seconds, 6))
valid = lengths.filter(lambda seconds: seconds > 60)
wait_timeout = {"wait_timeout_s": st.integers(60, 600_000)}
of_all = st.fixed_dictionaries({}, optional=wait_timeout) | st.fixed_dictionaries(
    {"advisory": st.just(True)}, optional={"reason": words.filter(bool), **wait_timeout}
)
gates = st.fixed_dictionaries(
    {"driver_version": st.just({})},
    optional={
        "approval": st.fixed_dictionaries({}, optional={"needed": st.integers(1, 9), "valid_for_s": valid}),
        "window": st.fixed_dictionaries({}, optional={"must_last_s": st.integers(0, 604_800)}),
        "workloads_ready": of_all,
        "failure_budget": st.fixed_dictionaries({"tolerate": st.integers(0, 10**6)}),
        "soak": st.fixed_dictionaries({"duration_s": lengths}),
    },
)
stages = st.builds(
    StageDraft,
    name=words.filter(bool),
    kind=st.just(StageKind.POOL),
    pool_id=st.sampled_from([None, "training", "no"]),
    selector=st.sampled_from(["", "zone=a", "zone in (a,b),!c"]),
    count=st.none() | st.integers(1, 10**5),
    max_unavailable=st.integers(1, 10**5),
    timeout_s=st.integers(60, 604_800),
    gate_options=gates,
)


class ReadAfterWrite(TestCase):
    @settings(max_examples=25)
    @given(title=words, later=st.lists(stages, max_size=4), canary=stages)
    def test_what_is_written_and_applied_again_is_the_same_draft(self, title, later, canary):
        owner, drafted = self.a_draft(title, [canary, *later])

        text = write(drafted)
        done = apply(parse_plan_document(text), actor=owner, now=NOON)
        as_json = apply(parse_plan_document(json.dumps(content_of(drafted))), actor=owner, now=NOON)
        plain = {key: value for key, value in content_of(drafted).items() if key not in {"plan", "revision"}}
        Plan.objects.filter(pk=drafted.pk).update(state=PlanState.DISCARDED)
        anew = apply(parse_plan_document(json.dumps(plain)), actor=owner, now=NOON)

        assert (done.outcome, done.differences) == (Applying.UNCHANGED, [])
        assert (as_json.outcome, as_json.plan) == (Applying.UNCHANGED, drafted)
        assert anew.outcome == Applying.DRAFTED
        assert (anew.plan.title, anew.plan.to_version) == (drafted.title, NEW)
        assert plan_drafts.stages_of(anew.plan) == plan_drafts.stages_of(drafted)

    def a_draft(self, title: str, stages: list[StageDraft]):
        cluster = Cluster.objects.first() or a_driver_cluster()
        pools = (
            {name: a_pool(cluster, name).pk for name in ("training", "no")}
            if not cluster.pools.exists()
            else {pool.name: pool.pk for pool in cluster.pools.all()}
        )
        owner = a_user(role="operator")
        placed = [StageDraft(**{**vars(one), "pool_id": pools.get(one.pool_id or "")}) for one in stages]
        placed = list({one.name.strip().casefold(): one for one in reversed(placed)}.values())[::-1]  # no name twice
        first = StageDraft(**{**vars(placed[0]), "kind": StageKind.CANARY, "count": placed[0].count or 1})
        plan = plan_drafts.draft(
            cluster=cluster, title=title, driver_object=DriverObject.objects.get(cluster=cluster, kind="NVIDIADriver"),
            to_version=NEW, stages=with_approvals(cluster, [first, *placed[1:]]), actor=owner, now=NOON,
        )  # fmt: skip
        return owner, plan
