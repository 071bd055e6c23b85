"""What becomes of findings over several looks: muted, opened again, listed under their cause."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark, Node, Observer
from health.evaluation import evaluation_round, finding_openings
from health.inbox import acts, rule_mutes
from health.lifecycle import FindingState
from health.models import Finding
from tests.make import NOON, a_cluster, a_finding, a_node, a_pool

GPU = "nvidia.com/gpu"
RULE = "allocatable-below-expected"
pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=30))
    return cluster


@pytest.fixture
def node(cluster):
    counts = {"allocatable": {GPU: 7}, "capacity": {GPU: 8}, "expected": {GPU: 8}}
    return a_node(cluster, "gpu-001", **counts)


def look(cluster, after: timedelta) -> int:
    Bookmark.objects.filter(cluster=cluster).update(last_seen_at=NOON + after)
    return evaluation_round.evaluate_cluster(cluster, now=NOON + after)


def allocatable(number: int) -> None:
    Node.objects.filter(name="gpu-001").update(allocatable={GPU: number})


def s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def an_open_one(cluster) -> Finding:
    look(cluster, s(0))
    look(cluster, s(70))
    return Finding.objects.get(rule=RULE, state=FindingState.OPEN)


def test_what_comes_back_soon_is_the_same_finding_opened_again(cluster, node):
    first = an_open_one(cluster)
    for start in (100, 300):
        allocatable(8)
        look(cluster, s(start))
        allocatable(7)
        look(cluster, s(start + 10))
        look(cluster, s(start + 80))

    again = Finding.objects.get()

    assert (again.pk, again.times, again.state) == (first.pk, 3, FindingState.OPEN)
    assert (again.resolved_at, again.since, again.first_opened_at) == (None, NOON + s(310), NOON + s(70))
    assert again.recurrence == "opened 3 times since 2026-11-21 12:01 UTC"


def test_what_comes_back_later_is_another(cluster, node):
    an_open_one(cluster)
    allocatable(8)
    look(cluster, s(100))
    allocatable(7)
    look(cluster, s(100) + finding_openings.SAME_WITHIN + s(1))
    look(cluster, s(100) + finding_openings.SAME_WITHIN + s(71))

    assert [row.times for row in Finding.objects.order_by("pk")] == [1, 1]


def test_who_looks_after_it_hears_of_it_again_when_it_gets_worse(cluster, node):
    finding = an_open_one(cluster)
    acts.acknowledge(finding, actor="ada", now=NOON + s(75))
    allocatable(0)

    assert look(cluster, s(80)) == 1

    worse = Finding.objects.get()
    assert (worse.severity, worse.state, worse.acknowledged_by) == ("critical", FindingState.OPEN, "")
    assert worse.assigned_to == "ada"


def test_a_warning_whose_cause_changes_stays_acknowledged(cluster, node):
    finding = an_open_one(cluster)
    acts.acknowledge(finding, actor="ada", now=NOON + s(75))
    allocatable(6)

    look(cluster, s(80))

    assert Finding.objects.get().state == FindingState.ACKNOWLEDGED


def test_a_look_does_not_write_over_what_a_person_did(cluster, node, monkeypatch):
    finding = an_open_one(cluster)
    acts.acknowledge(finding, actor="ada", now=NOON + s(75))
    stale = Finding.objects.get()
    stale.state, stale.title = FindingState.OPEN, "Other words."

    stale.save(update_fields=evaluation_round.WRITTEN_AGAIN)

    kept = Finding.objects.get()
    assert (kept.state, kept.title) == (FindingState.ACKNOWLEDGED, "Other words.")


def test_another_action_is_judged_anew(cluster, node):
    finding = an_open_one(cluster)
    acts.dismiss(finding, actor="ada", reason="It is no Xid.", now=NOON + s(75))
    Node.objects.update(capacity={GPU: 7}, allocatable={GPU: 6})

    look(cluster, s(80))

    assert Finding.objects.get().feedback == ""


def test_what_opens_in_the_scope_of_a_mute_is_muted_and_its_end_tells_of_it(cluster, node):
    row = rule_mutes.mute_of_place(cluster, RULE, node=node)
    rule_mutes.mute(row, actor="ada", reason="Being replaced.", until=NOON + timedelta(hours=1), now=NOON)
    look(cluster, s(0))
    look(cluster, s(70))
    muted = Finding.objects.get()
    assert (muted.state, muted.opened_at) == (FindingState.MUTED, NOON + s(70))
    assert Node.objects.get().unresolved == 0

    assert look(cluster, s(3601)) == 1

    assert Finding.objects.get().state == FindingState.OPEN
    assert Node.objects.get().unresolved == 1


def test_a_mute_ends_although_its_cluster_is_not_seen(cluster, node):
    an_open_one(cluster)
    rule_mutes.mute(
        rule_mutes.mute_of_place(cluster, RULE),
        actor="ada",
        reason="x",
        until=NOON + timedelta(hours=1),
        now=NOON + s(75),
    )
    assert Finding.objects.get().state == FindingState.MUTED

    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(hours=2))

    assert Finding.objects.get(rule=RULE).state == FindingState.OPEN


def test_a_mute_of_a_pool_is_of_its_nodes_only(cluster, node):
    pool = a_pool(cluster)
    rule_mutes.mute(
        rule_mutes.mute_of_place(cluster, RULE, pool=pool),
        actor="ada",
        reason="x",
        until=NOON + timedelta(hours=1),
        now=NOON,
    )
    mine = a_node(cluster, pool=pool, allocatable={GPU: 7}, capacity={GPU: 8}, expected={GPU: 8})

    look(cluster, s(0))
    look(cluster, s(70))

    states = dict(Finding.objects.values_list("node", "state"))
    assert states == {node.pk: FindingState.OPEN, mine.pk: FindingState.MUTED}


def test_a_mute_that_covers_no_more_of_it_leaves_what_another_covers(cluster, node):
    one = rule_mutes.mute_of_place(cluster, RULE)
    rule_mutes.mute(one, actor="ada", reason="x", until=NOON + timedelta(hours=1), now=NOON)
    rule_mutes.mute(
        rule_mutes.mute_of_place(cluster, RULE, node=node),
        actor="ada",
        reason="y",
        until=NOON + timedelta(hours=1),
        now=NOON,
    )
    look(cluster, s(0))
    look(cluster, s(70))

    rule_mutes.lift(one, actor="bob", reason="z", now=NOON + s(80))

    assert Finding.objects.get().state == FindingState.MUTED


def test_what_is_explained_is_listed_under_its_cause_and_comes_up_when_that_is_over(cluster, node):
    finding = an_open_one(cluster)
    cause = a_finding(cluster, "node gpu-001", node=node, rule="mig-change-stuck", severity="warning")
    finding_openings.correlate(cluster, now=NOON)
    finding.refresh_from_db()
    assert finding.parent == cause
    assert list(Finding.objects.open().without_cause()) == [cause]

    look(cluster, s(80))

    finding.refresh_from_db()
    assert Finding.objects.get(pk=cause.pk).state == FindingState.RESOLVED
    assert (finding.parent, finding.state) == (None, FindingState.OPEN)
    assert Node.objects.get().unresolved == 1


def test_one_gpu_of_a_node_does_not_explain_that_all_are_missing(cluster, node):
    cause = a_finding(cluster, "GPU 3 of gpu-001", node=node, rule="gpu-xid", severity="critical")
    missing = an_open_one(cluster)
    assert missing.parent == cause

    allocatable(0)
    look(cluster, s(80))

    missing.refresh_from_db()
    assert (missing.parent, missing.severity) == (None, "critical")
    assert Node.objects.get().unresolved == 2


def test_a_board_explains_nothing_of_the_one_that_has_its_number_now(cluster, node):
    given = {"node": node, "severity": "critical"}
    fallen = a_finding(cluster, "GPU 3 of gpu-001", rule="gpu-xid", gpu_uuid="GPU-a", **given)
    its = a_finding(cluster, "GPU GPU-a of gpu-001", rule="gpu-silent", gpu_uuid="GPU-a", **given)
    other = a_finding(cluster, "GPU 3 of gpu-001", rule="gpu-row-remap", gpu_uuid="GPU-b", **given)

    finding_openings.correlate(cluster, now=NOON)

    parents = dict(Finding.objects.values_list("pk", "parent"))
    assert parents == {fallen.pk: None, its.pk: fallen.pk, other.pk: None}


def test_what_a_node_lacks_is_counted_in_gpus_and_not_in_their_shares(cluster, node):
    counts = {"allocatable": {GPU: 28}, "capacity": {GPU: 32}, "expected": {GPU: 32}}
    Node.objects.update(layout="gpu=whole/time-slicing*4", **counts)
    cause = a_finding(cluster, "GPU 3 of gpu-001", node=node, rule="gpu-xid", severity="critical")

    assert an_open_one(cluster).parent == cause


def test_a_muted_gpu_hides_nothing_that_began_later(cluster, node):
    muted = a_finding(cluster, "GPU 3 of gpu-001", node=node, rule="gpu-xid", severity="critical", since=NOON)
    rule_mutes.mute(
        rule_mutes.scoped(muted, "finding"),
        actor="ada",
        reason="RMA",
        until=NOON + timedelta(days=14),
        now=NOON + s(60),
    )
    before = a_finding(cluster, "GPU 3 of gpu-001", node=node, rule="gpu-row-remap", since=NOON)
    after = a_finding(cluster, "GPU 3 of gpu-001", node=node, rule="gpu-ecc-uncorrected", since=NOON + s(61))

    finding_openings.correlate(cluster, now=NOON)
    evaluation_round.count_on_nodes(cluster)

    assert list(Finding.objects.open().without_cause()) == [after]
    assert Finding.objects.get(pk=before.pk).parent == muted
    assert Node.objects.get().unresolved == 1


@pytest.mark.parametrize(
    ("conditions", "is_explained"),
    [(["GpuMemWatch"], True), (["MemoryPressure"], False), (["GpuMemWatch", "DiskPressure"], False)],
)
def test_a_gpu_explains_the_conditions_that_are_about_gpus(cluster, node, conditions, is_explained):
    cause = a_finding(cluster, "GPU 3 of gpu-001", node=node, rule="gpu-xid", severity="critical")
    bad = a_finding(cluster, node=node, rule="node-conditions", facts=dict.fromkeys(conditions, "It is so."))

    finding_openings.correlate(cluster, now=NOON)

    bad.refresh_from_db()
    assert bad.parent == (cause if is_explained else None)


def test_two_findings_of_one_cause_are_one_on_their_node(cluster, node):
    cause = a_finding(cluster, node=node, rule="mig-change-stuck")
    a_finding(cluster, node=node, rule=RULE, parent=cause)

    evaluation_round.count_on_nodes(cluster)

    assert Node.objects.get().unresolved == 1
