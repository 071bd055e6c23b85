"""Events of core/v1. From kubernetes/api, core/v1/types.go.

Reporters through events.k8s.io/v1 set eventTime, reportingController and series, and leave count and the two
timestamps empty. Both are the same objects, and core/v1 shows both.
"""

from datetime import datetime

from kube.structs.meta import Seen, Struct


class Involved(Struct, frozen=True):
    kind: str | None = ""
    namespace: str | None = ""
    name: str | None = ""
    uid: str | None = ""  # for Events of kubelets: the node's name


class EventSource(Struct, frozen=True):
    component: str | None = ""
    host: str | None = ""


class EventSeries(Struct, frozen=True):
    count: int | None = 0
    last_observed_time: datetime | None = None


class EventSeen(Seen, frozen=True):
    involved_object: Involved | None = None
    type: str | None = ""  # Normal, Warning
    reason: str | None = ""
    message: str | None = ""
    source: EventSource | None = None
    reporting_component: str | None = ""
    count: int | None = None
    series: EventSeries | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None

    @property
    def about(self) -> Involved:
        return self.involved_object or Involved()
