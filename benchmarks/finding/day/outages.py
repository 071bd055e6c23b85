"""What happens to all of a cluster at once: nobody sees its GPUs, or nobody sees it at all, or clocks disagree."""

from dataclasses import dataclass
from enum import StrEnum


class Outage(StrEnum):
    PROMETHEUS = "prometheus-away"
    MOMENT = "prometheus-away-for-a-moment"  # shorter than anybody is to be told of
    API = "api-away"
    WATCHING = "nobody-watches"  # no worker takes the lease of the cluster
    MEMORY = "redis-emptied"  # what GPUs have had is remembered no more; nothing is to be told anew
    CLOCK = "prometheus-clock"  # its clock is some seconds off ours; nothing is to be found


@dataclass(frozen=True)
class OutageKind:
    rule: str  # blank: nobody is to be told
    after_s: float  # as docs/findings.md has it, and how old a bookmark may be (90 s)
    shortest_s: float
    longest_s: float


OUTAGES = {
    Outage.PROMETHEUS: OutageKind("telemetry-silent", 120.0, 420.0, 1200.0),
    Outage.MOMENT: OutageKind("", 0.0, 45.0, 60.0),
    Outage.API: OutageKind("cluster-not-seen", 60.0 + 90.0, 480.0, 1200.0),
    Outage.WATCHING: OutageKind("cluster-unwatched", 90.0, 480.0, 1200.0),
    Outage.MEMORY: OutageKind("", 0.0, 60.0, 60.0),
    Outage.CLOCK: OutageKind("", 0.0, 900.0, 3600.0),
}
