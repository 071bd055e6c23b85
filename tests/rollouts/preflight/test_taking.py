"""What is wrong with the nodes of a draft is said with the stage that it is about, before anything is touched."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fleet.pools.changes import change_pool
from people.models import AuditEntry
from rollouts.commands.preview import preview
from rollouts.commands.refusals import BadPlan
from rollouts.commands.stage_drafts import StageDraft
from rollouts.models import StageKind
from tests.make import NOON, a_pool
from tests.rollouts.make import lines_of
from tests.rollouts.rows import CANARY, GATES, REST, a_draft


def said(plan, code: str) -> list[str]:
    told = preview(plan, now=NOON)
    return [check.sentence for check in (*told.blockers, *told.warnings) if check.code == code]


def only(node: str, name: str) -> StageDraft:
    return StageDraft(name, StageKind.POOL, selector=f"kubernetes.io/hostname={node}", gate_options=GATES)


def test_a_node_that_is_named_twice_is_said_to_be_in_the_earlier_stage(cluster, owner):
    for node in cluster.nodes.all():
        type(node).objects.filter(pk=node.pk).update(labels={**node.labels, "kubernetes.io/hostname": node.name})
    canary = replace(CANARY, selector="kubernetes.io/hostname=node-0")

    plan = a_draft(cluster, owner, stages=(canary, only("node-0", "Again"), REST))

    assert said(plan, "empty-stage") == ["Again takes no node."]


def named(cluster) -> None:
    for node in cluster.nodes.all():
        type(node).objects.filter(pk=node.pk).update(labels={**node.labels, "kubernetes.io/hostname": node.name})


def test_a_node_that_a_later_stage_names_too_is_said_to_go_once_with_the_first(cluster, owner):
    named(cluster)
    again = StageDraft(
        "Again", StageKind.POOL, selector="kubernetes.io/hostname in (node-0,node-1)", gate_options=GATES
    )
    canary = replace(CANARY, count=None, selector="kubernetes.io/hostname=node-0")

    plan = a_draft(cluster, owner, stages=(canary, again, REST))

    assert said(plan, "twice") == ["Again and Canary select the same nodes. 1 node changes with Canary."]
    assert said(plan, "empty-stage") == []


def test_pools_that_overlap_are_said_to(cluster, owner):
    ours, theirs = a_pool(cluster, "ours"), a_pool(cluster, "theirs")
    for name, pools in {"node-0": [ours], "node-1": [ours, theirs], "node-2": [theirs]}.items():
        cluster.nodes.get(name=name).pools.set(pools)
    first, second = replace(REST, name="Ours", pool_id=ours.pk), replace(REST, name="Theirs", pool_id=theirs.pk)
    plan = a_draft(cluster, owner, stages=(replace(CANARY, selector="tier=none"), first, second))

    (check,) = [one for one in preview(plan, now=NOON).warnings if one.code == "twice"]

    assert check.sentence == "Theirs and Ours select the same nodes. 1 node changes with Ours."
    assert (check.field, lines_of(check)) == ("stages.2.pool", ("Nodes: node-1",))


def test_what_a_canary_or_a_number_of_nodes_leaves_to_a_later_stage_is_no_matter(cluster, owner):
    named(cluster)
    pool = a_pool(cluster, "h200")
    pool.nodes.set(cluster.nodes.all())
    by_name = replace(CANARY, count=None, selector="kubernetes.io/hostname=node-0")
    two = replace(REST, name="Two", pool_id=pool.pk, count=1)

    for stages in ((CANARY, replace(REST, selector="kubernetes.io/hostname")), (by_name, two, REST)):
        assert said(a_draft(cluster, owner, stages=stages), "twice") == []


def test_a_selector_that_matches_nothing_says_no_more_than_that(cluster, owner):
    plan = a_draft(cluster, owner, stages=(CANARY, only("node-9", "Nowhere"), REST))

    assert said(plan, "empty-stage") == ["Nowhere takes no node."]


def test_a_stage_that_asks_for_more_nodes_than_there_are_is_warned_of(cluster, owner):
    plan = a_draft(cluster, owner, stages=(replace(CANARY, count=5000),))

    assert said(plan, "fewer") == ["Canary asks for 5000 nodes and finds 3."] or said(plan, "fewer") == [
        "Canary asks for 5000 nodes, and 3 are there for it."
    ]


def test_a_stage_of_as_many_as_there_are_is_no_matter(cluster, owner):
    assert said(a_draft(cluster, owner, stages=(replace(CANARY, count=3),)), "fewer") == []


@pytest.mark.parametrize("name", ["Canary", " canary "])
def test_two_stages_of_one_name_are_refused(cluster, owner, name):
    with pytest.raises(BadPlan) as refusal:
        a_draft(cluster, owner, stages=(CANARY, replace(REST, name=name)))

    assert refusal.value.problems == [
        {
            "field": "stages.1.name",
            "sentence": f"Stage 1 has the same name, {name.strip()}. Give each stage its own name.",
        }
    ]


def test_a_pool_that_changed_under_the_draft_is_said_with_who_changed_it(cluster, owner):
    pool = a_pool(cluster, "h200")
    plan = a_draft(cluster, owner, stages=(CANARY, replace(REST, pool_id=pool.pk)))
    assert said(plan, "pool-changed") == []

    change_pool(pool, selector="zone=a", actor="bob", now=NOON + timedelta(minutes=1))

    assert said(plan, "pool-changed") == [
        "Pool h200 changed after the draft was written. bob changed it. Rest takes 0 nodes now."
    ]
    assert AuditEntry.objects.filter(subject=f"pool:{pool.pk}").exists()
