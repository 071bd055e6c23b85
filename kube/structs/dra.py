"""Dynamic Resource Allocation in resource.k8s.io/v1, v1beta2 and v1beta1, which differ only in shape.

From kubernetes/api, resource/{v1,v1beta2,v1beta1}/types.go. v1beta1 has a device's properties under `basic` and a
request's fields beside its name; the others have them flat, and under `exactly`.
"""

import msgspec

from kube.structs.meta import Seen, Struct


class Attribute(Struct, frozen=True):
    """One attribute; exactly one field is set. Lists are not read."""

    string: str | None = None
    version: str | None = None
    bool_: bool | None = msgspec.field(default=None, name="bool")
    int_: int | None = msgspec.field(default=None, name="int")

    @property
    def text(self) -> str:
        return self.string or self.version or ""


class Capacity(Struct, frozen=True):
    value: str | int | float | None = None


class DeviceTaint(Struct, frozen=True):
    key: str = ""
    value: str | None = ""
    effect: str | None = ""


class Properties(Struct, frozen=True):
    attributes: dict[str, Attribute] | None = None
    capacity: dict[str, Capacity] | None = None
    taints: list[DeviceTaint] | None = None


class Device(Properties, frozen=True):
    name: str = ""
    node_name: str | None = ""
    basic: Properties | None = None  # v1beta1

    @property
    def properties(self) -> Properties:
        return self.basic or self


class SlicePool(Struct, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int | None = None


class SliceSpec(Struct, frozen=True):
    driver: str = ""
    pool: SlicePool | None = None
    node_name: str | None = ""
    devices: list[Device] | None = None


class SliceSeen(Seen, frozen=True):
    spec: SliceSpec | None = None


class Cel(Struct, frozen=True):
    expression: str | None = ""


class DeviceSelector(Struct, frozen=True):
    cel: Cel | None = None


class Wish(Struct, frozen=True):
    """A request for a number of devices of a class that match all selectors."""

    device_class_name: str | None = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str | None = ""  # ExactCount, All; blank: ExactCount
    count: int | None = None  # none: 1
    admin_access: bool | None = False
    tolerations: list[msgspec.Raw] | None = None  # of taints of devices


class Alternative(Wish, frozen=True):
    name: str = ""


class Request(Wish, frozen=True):
    name: str = ""
    exactly: Wish | None = None  # v1beta1 has these fields beside the name
    first_available: list[Alternative] | None = None


class DeviceClaim(Struct, frozen=True):
    requests: list[Request] | None = None
    constraints: list[msgspec.Raw] | None = None  # attributes that devices must share, or must not


class ClaimSpec(Struct, frozen=True):
    devices: DeviceClaim | None = None


class Result(Struct, frozen=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = False


class Results(Struct, frozen=True):
    results: list[Result] | None = None


class Allocation(Struct, frozen=True):
    devices: Results | None = None


class Consumer(Struct, frozen=True):
    api_group: str | None = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ClaimStatus(Struct, frozen=True):
    allocation: Allocation | None = None
    reserved_for: list[Consumer] | None = None


class ClaimSeen(Seen, frozen=True):
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None


class ClassSpec(Struct, frozen=True):
    selectors: list[DeviceSelector] | None = None
    extended_resource_name: str | None = ""


class ClassSeen(Seen, frozen=True):
    spec: ClassSpec | None = None
