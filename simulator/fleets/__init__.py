"""What is in a cluster, by name."""

from simulator.fleets.small import Builder, small

FLEETS: dict[str, Builder] = {"small": small}

__all__ = ["FLEETS", "Builder"]
