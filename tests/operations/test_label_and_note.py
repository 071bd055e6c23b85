"""Bulk labels and notes, by the path of quarantines and drains."""

import pytest

from fleet.models import NodeNote
from gpu.labels import IN_POOL
from operations.lifecycle import OperationState
from operations.models import Disruption
from operations.refusals import BadOperation
from simulator.kinds import NODE
from tests.operations.test_rounds import begin, rounds
from tests.rollouts.engine.ground import CANARY, REST, Ground

pytestmark = pytest.mark.django_db


def test_nodes_are_labelled_into_a_pool_and_out_of_it(ground: Ground):
    operation = rounds(ground, begin(ground, "label", CANARY, REST[0], options={"pool": "h100-b"}), 2)
    assert operation.state == OperationState.FINISHED
    assert [ground.labels(name).get(IN_POOL) for name in (CANARY, REST[0], REST[1])] == ["h100-b", "h100-b", None]
    assert not Disruption.objects.in_force().exists(), "a label takes no node out of service"
    rounds(ground, begin(ground, "label", CANARY, options={"pool": ""}), 2)

    assert IN_POOL not in ground.labels(CANARY)
    with pytest.raises(BadOperation, match="63 letters"):
        begin(ground, "label", CANARY, options={"pool": "no blanks"})


def test_a_node_that_was_remade_is_not_labelled(ground: Ground):
    operation = begin(ground, "label", CANARY, options={"pool": "b"})
    node = ground.node(CANARY)
    ground.delete(CANARY)
    ground.store.seed(NODE, node | {"metadata": {"name": CANARY, "uid": "uid-of-another"}})

    (row,) = rounds(ground, operation, 2).nodes.all()
    assert (row.state, row.reason) == ("failed", f"{CANARY} is now a different node with the same name.")
    assert IN_POOL not in ground.labels(CANARY)


def test_a_note_is_on_each_timeline_once(ground: Ground):
    operation = begin(ground, "note", CANARY, REST[0], reason="Power work on Friday.")
    rounds(ground, operation, 3)

    notes = NodeNote.objects.order_by("node_name").values_list("node_name", "by", "text")
    assert list(notes) == [(name, "ada", "Power work on Friday.") for name in sorted([CANARY, REST[0]])]
    assert ground.writes() == [] or all("labels" not in str(each) for each in ground.writes())
