"""What runs together in a cluster and should not, by the compatibility matrix, for the rule about it."""

from datetime import datetime

from fleet.drivers.cluster_drivers import read_drivers
from fleet.models import Cluster
from gpu.compatibility import Support
from health.rules.base import BadCombination
from health.stack.combinations import compare, surroundings


def bad_combinations(cluster: Cluster, *, now: datetime) -> tuple[BadCombination, ...]:
    """The worst first. Seven queries. Nothing of a cluster that has no GPU nodes of NVIDIA."""
    compared = compare(cluster, surroundings(read_drivers(cluster)), user=None, today=now.date())
    if not compared.nodes:
        return ()
    return tuple(
        BadCombination(
            line.verdict.answer is Support.KNOWN_BAD,
            line.verdict.sentence,
            line.verdict.action,
            line.verdict.source,
            line.nodes,
        )
        for line in compared.lines
        if line.verdict.answer in (Support.KNOWN_BAD, Support.UNSUPPORTED)
    )
