"""What the page of the fleet counts, as somebody sees it."""

from fleet.web.summary import FleetRead, cluster_lines, heard_by, read_fleet
from people.models import User
from tests import make
from tests.make import NOON


def read_as(user: User) -> FleetRead:
    make.counted(user)
    return read_fleet(user, heard_by(cluster_lines(user, now=NOON)))
