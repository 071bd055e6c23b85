"""What is in a cluster, by name."""

from simulator.fleets.large import large
from simulator.fleets.mixes import mixed
from simulator.fleets.plan import Builder
from simulator.fleets.small import small

FLEETS: dict[str, Builder] = {"small": small, "mixed": mixed, "large": large}

__all__ = ["FLEETS", "Builder"]
