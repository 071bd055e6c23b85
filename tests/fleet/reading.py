"""What the page of the fleet counts, as somebody sees it."""

from fleet.web.summary import FleetRead, alike_nodes, cluster_lines, freshness_by_cluster, read_fleet
from people.models import User
from tests import make
from tests.make import NOON


def read_as(user: User) -> FleetRead:
    make.counted(user)
    lines = cluster_lines(user, now=NOON)
    return read_fleet(user, alike_nodes(lines), freshness_by_cluster(lines))
