"""ResourceQuota, LimitRange, PriorityClass. From kubernetes/api, core/v1 and scheduling/v1 types.go."""

from kube.structs.meta import ResourceList, Seen, Struct


class QuotaPart(Struct, frozen=True):
    hard: ResourceList | None = None
    used: ResourceList | None = None  # in a status only


class QuotaSeen(Seen, frozen=True):
    spec: QuotaPart | None = None
    status: QuotaPart | None = None


class Limit(Struct, frozen=True):
    type: str = ""  # Container, Pod, PersistentVolumeClaim
    max: ResourceList | None = None
    min: ResourceList | None = None
    default: ResourceList | None = None
    default_request: ResourceList | None = None


class LimitRangeSpec(Struct, frozen=True):
    limits: list[Limit] | None = None


class LimitRangeSeen(Seen, frozen=True):
    spec: LimitRangeSpec | None = None


class PriorityClassSeen(Seen, frozen=True):
    """It has no spec: its fields stand beside its metadata."""

    value: int = 0
    global_default: bool | None = False
    preemption_policy: str | None = ""  # none: PreemptLowerPriority
