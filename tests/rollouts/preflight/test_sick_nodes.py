"""Nodes that open findings call sick: no stage takes them unasked, and who lets one take them says why."""

from dataclasses import replace

import pytest

from fleet.models import Node
from rollouts.commands.plan_drafts import edit
from rollouts.commands.plan_start import start
from rollouts.commands.preview import Preview, preview
from tests.make import NOON, a_finding, a_user
from tests.rollouts.make import NEW, lines_of
from tests.rollouts.rows import CANARY, REST, a_draft, a_driver_cluster

pytestmark = pytest.mark.django_db
LACKS = "8 GPUs missing on node-0."
REASON = "Its driver is what is broken."


@pytest.fixture
def cluster():
    return a_driver_cluster()


@pytest.fixture
def owner(cluster):
    return a_user("ada", role="operator")


def found(cluster, name: str = "node-0", **given) -> None:
    node = Node.objects.get(cluster=cluster, name=name)
    row = {"rule": "allocatable-below-expected", "severity": "critical", "title": LACKS.rstrip(".")}
    a_finding(cluster, f"node {name}", node=node, **row | given)


def previewed(cluster, owner, *, stages=(CANARY, REST)) -> Preview:
    return preview(a_draft(cluster, owner, stages=stages), now=NOON)


def taken(told: Preview) -> set[str]:
    return {name for stage in told.stages for name in stage.targets}


def test_a_node_with_an_open_critical_finding_is_left_out_and_the_finding_is_named(cluster, owner):
    found(cluster)

    told = previewed(cluster, owner)

    assert taken(told) == {"node-1", "node-2"}
    assert told.excluded == [("node-0", f"open finding: {LACKS}")]
    assert "node-0" not in told.uncovered
    (check,) = [check for check in told.warnings if check.code == "sick-left-out"]
    assert check.sentence == "node-0 is left out as sick. Open findings name these nodes."
    assert lines_of(check) == (f"node-0: {LACKS}",)


@pytest.mark.parametrize(
    ("given", "is_left_out"),
    [
        ({"severity": "warning"}, True),  # a GPU is missing
        ({"rule": "node-flapping", "severity": "warning"}, True),
        ({"rule": "gpu-xid"}, True),
        ({"rule": "gpu-xid", "severity": "warning"}, False),
        ({"state": "muted"}, True),  # nobody is told, and it is wrong all the same
        ({"state": "acknowledged"}, True),
        ({"state": "confirming"}, False),
        ({"state": "resolved", "resolved_at": NOON}, False),
        ({"is_shadow": True}, False),
    ],
)
def test_which_findings_call_a_node_sick(cluster, owner, given, is_left_out):
    found(cluster, **given)

    assert ("node-0" not in taken(previewed(cluster, owner))) is is_left_out


def test_a_stage_takes_sick_nodes_with_a_reason(cluster, owner):
    found(cluster)

    told = previewed(cluster, owner, stages=(CANARY, replace(REST, sick_nodes_reason=REASON)))

    assert "node-0" in told.stages[1].targets
    assert told.excluded == []
    (check,) = [check for check in told.warnings if check.code == "sick-taken"]
    assert check.title == "Rest takes node-0 with open findings"
    assert (check.is_grave, check.field, lines_of(check)) == (
        True,
        "stages.1.sick_nodes_reason",
        (f"Reason: {REASON}", f"node-0: {LACKS}"),
    )


def test_the_reason_is_sealed_with_the_stage_that_takes_them(cluster, owner):
    found(cluster)
    plan = a_draft(cluster, owner, stages=(CANARY, replace(REST, sick_nodes_reason=REASON)))

    start(plan, actor=owner, reason="Go.", expected_revision=plan.revision, now=NOON)

    canary, rest = plan.sealed["stages"][:2]
    assert "sick_nodes_reason" not in canary
    assert rest["sick_nodes_reason"] == REASON


def test_a_stage_for_which_only_sick_nodes_are_left_says_so(cluster, owner):
    for name in ("node-0", "node-1", "node-2"):
        found(cluster, name)

    told = previewed(cluster, owner, stages=(CANARY,))

    (check,) = [check for check in told.blockers if check.code == "empty-stage"]
    assert check.sentence == "Canary takes no node."


def test_an_edit_without_the_reason_leaves_them_out_again(cluster, owner):
    found(cluster)
    plan = a_draft(cluster, owner, stages=(CANARY, replace(REST, sick_nodes_reason=REASON)))

    edit(plan, title="", to_version=NEW, stages=(CANARY, REST), expected_revision=1, actor=owner, now=NOON)

    assert "node-0" not in taken(preview(plan, now=NOON))
