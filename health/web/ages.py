"""How old what each source says is: where nothing is found, silence is not to be taken for health."""

from dataclasses import dataclass
from datetime import datetime

from fleet.freshness.sight import sights_of_all
from fleet.models import Cluster
from health.models import SourceState, TelemetrySource
from people.models import User


@dataclass(frozen=True)
class Age:
    """How old what a source says is. `is_late`: so old that its silence says nothing."""

    name: str
    at: datetime | None
    is_late: bool
    because: str = ""


def ages_of(user: User, *, now: datetime) -> list[Age]:
    """Of each source that this person sees. Four queries."""
    sights = sights_of_all(now=now)
    clusters = Cluster.objects.visible_to(user).order_by("name")
    found = [
        Age(f"cluster {one.name}", sights[one.pk].heard_at, not sights[one.pk].is_live, sights[one.pk].because)
        for one in clusters
    ]
    sources = TelemetrySource.objects.visible_to(user).exclude(state=SourceState.OFF).select_related("cluster")
    return found + [
        Age(
            f"telemetry of {one.cluster.name}",
            one.answered_at,
            one.state != SourceState.ANSWERING,
            one.message or ("" if one.state == SourceState.ANSWERING else "Nobody has asked it yet."),
        )
        for one in sources
    ]
