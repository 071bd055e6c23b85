"""What is in a cluster, by name."""

from simulator.fleets.large import large
from simulator.fleets.mixes import mixed
from simulator.fleets.plan import Builder
from simulator.fleets.small import cluster_policy, small

FLEETS: dict[str, Builder] = {
    "small": small,
    "cluster-policy": cluster_policy,
    "mixed": mixed,
    "large": large,
}

__all__ = ["FLEETS", "Builder"]
