from datetime import datetime

from fleet.drivers.cluster_drivers import operator_trouble
from fleet.freshness.cluster import why_unseen
from fleet.models import Cluster
from kube.resources import DEPLOYMENTS


def operator_down(cluster: Cluster, *, now: datetime) -> str:
    """Returns a sentence that the operator does not run; empty if it runs or cannot be observed.

    One query, and two more with a problem.
    """
    trouble = operator_trouble(cluster)
    return "" if trouble and why_unseen(cluster.pk, DEPLOYMENTS.name, now=now) else trouble
