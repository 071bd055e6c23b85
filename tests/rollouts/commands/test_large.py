from datetime import timedelta

import pytest

from fleet.models import Node
from rollouts.commands.duration import Duration
from rollouts.commands.plan_drafts import MANY, is_large
from rollouts.commands.preview import preview
from rollouts.commands.stage_drafts import StageDraft
from rollouts.models import StageKind
from tests.make import NOON
from tests.rollouts.rows import CANARY, GATES, a_draft

WEEK = Duration(timedelta(days=7), "About 7 d: 840 waves.")


@pytest.mark.parametrize(
    ("nodes", "said"), [(MANY - 1, []), (5_000, ["The plan changes 5000 nodes. About 7 d: 840 waves."])]
)
def test_a_plan_of_very_many_nodes_says_how_many_and_how_long(nodes: int, said: list[str]):
    assert [check.sentence for check in is_large(nodes, WEEK)] == said


def test_it_is_said_where_a_draft_takes_so_many(cluster, owner):
    row = cluster.nodes.values().get(name="node-2")
    more = ({**row, "id": None, "uid": f"uid-{number}", "name": f"more-{number}"} for number in range(MANY))
    Node.objects.bulk_create(Node(**given) for given in more)
    stages = (CANARY, StageDraft("Rest", StageKind.POOL, gate_options=GATES, max_unavailable=50))

    told = preview(a_draft(cluster, owner, stages=stages), now=NOON)

    (check,) = [one for one in told.warnings if one.code == "large"]
    assert check.title == "The plan changes 1003 nodes"
    assert (check.field, check.is_grave) == ("stages", False)
