from datetime import timedelta

import pytest

from fleet.models import Observer
from health.sources import snapshots
from tests.health.evaluation.saying import Saying
from tests.health.turns import give_back
from tests.make import NOON, a_cluster, a_node


@pytest.fixture
def cluster(redis):
    """A cluster whose node gpu-001 has GPUs that say something."""
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=30))
    a_node(cluster, "gpu-001")
    yield cluster
    snapshots.forget(cluster.pk)
    give_back(cluster.pk, "idle-gpus")


@pytest.fixture
def say(cluster):
    return Saying(cluster)
