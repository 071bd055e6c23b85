"""Whether the GPU operator, which changes the nodes of a plan, runs."""

from datetime import datetime

from fleet.drivers.operator_pods import operator_trouble
from fleet.freshness.cluster import why_unseen
from fleet.models import Cluster
from kube.resources import DEPLOYMENTS


def operator_down(cluster: Cluster, *, now: datetime) -> str:
    """That it is seen not to run, as a sentence. Blank: it runs, or nobody sees whether it does.

    One query, and two more where something is wrong.
    """
    trouble = operator_trouble(cluster)
    return "" if trouble and why_unseen(cluster.pk, DEPLOYMENTS.name, now=now) else trouble
