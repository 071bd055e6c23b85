"""ResourceQuota, LimitRange, PriorityClass. From kubernetes/api, core/v1 and scheduling/v1 types.go."""

from kube.structs.meta import Seen, Struct

Amounts = dict[str, str | int | float]


class QuotaPart(Struct, frozen=True):
    hard: Amounts | None = None
    used: Amounts | None = None  # in a status only


class QuotaSeen(Seen, frozen=True):
    spec: QuotaPart | None = None
    status: QuotaPart | None = None


class Limit(Struct, frozen=True):
    type: str = ""  # Container, Pod, PersistentVolumeClaim
    max: Amounts | None = None
    min: Amounts | None = None
    default: Amounts | None = None
    default_request: Amounts | None = None


class LimitRangeSpec(Struct, frozen=True):
    limits: list[Limit] | None = None


class LimitRangeSeen(Seen, frozen=True):
    spec: LimitRangeSpec | None = None


class PriorityClassSeen(Seen, frozen=True):
    """It has no spec: its fields stand beside its metadata."""

    value: int = 0
    global_default: bool | None = False
    preemption_policy: str | None = ""  # none: PreemptLowerPriority
