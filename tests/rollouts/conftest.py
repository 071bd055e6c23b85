import pytest

from fleet.models import Cluster
from people.models import User
from tests.make import a_user, who_approves
from tests.rollouts.rows import a_driver_cluster
from tests.saved_rows import build_once


@pytest.fixture
def owner(db: None) -> User:
    return build_once("owner", User, lambda: a_user("owner", role="operator"))


@pytest.fixture
def approver(db: None) -> User:
    return build_once("approver", User, lambda: a_user("approver", role="approver"))


@pytest.fixture
def cluster(db: None) -> Cluster:
    """Three nodes of one driver object, all in good order."""
    return a_driver_cluster() if who_approves() else build_once("driver cluster", Cluster, a_driver_cluster)
