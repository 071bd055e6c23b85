from datetime import timedelta

import pytest

from fleet.models import LostLease, Node, Observer
from fleet.observer.persistence.overdue_mig_changes import note_overdue
from fleet.states.node import RECONFIGURED_WITHIN
from tests.make import NOON, a_cluster, a_node

pytestmark = pytest.mark.django_db
LATE = NOON + RECONFIGURED_WITHIN + timedelta(seconds=1)


@pytest.fixture
def node() -> Node:
    cluster = a_cluster("north")
    Observer.objects.create(cluster=cluster, epoch=3, lease_until=NOON)
    return a_node(cluster, "gpu-0", mig_config_state="pending", mig_changing_since=NOON)


def test_a_change_that_does_not_end_is_noted_once(node: Node, told):
    assert note_overdue(node.cluster_id, epoch=3, now=LATE) == 1
    assert note_overdue(node.cluster_id, epoch=3, now=LATE) == 0

    node.refresh_from_db()
    assert node.mig_is_overdue
    assert Observer.batch_of(node.cluster_id) == 1
    assert [(one["prev"], one["seq"]) for one in told] == [(0, 1)]


def test_a_worker_whose_lease_is_over_notes_nothing(node: Node):
    Observer.objects.filter(cluster=node.cluster_id).update(epoch=4)

    with pytest.raises(LostLease):
        note_overdue(node.cluster_id, epoch=3, now=LATE)

    node.refresh_from_db()
    assert not node.mig_is_overdue
    assert Observer.batch_of(node.cluster_id) == 0
