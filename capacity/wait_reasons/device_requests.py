"""The devices that a ResourceClaim requests, compared with those that drivers offer. Pure.

Only simple selectors are evaluated: parts joined by `&&` that compare the driver, an attribute that is mirrored, or the
memory with a constant. CEL of kubernetes, staging/src/k8s.io/dynamic-resource-allocation/cel at 1.34.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kube.quantity import whole_quantity

PREFIX = "devices of "  # of their name among the resources of pods and nodes
QUOTED = r"""(?:"([^"\\]*)"|'([^'\\]*)')"""
DRIVER = re.compile(rf"device\.driver\s*==\s*{QUOTED}")
ATTRIBUTE = re.compile(rf"device\.attributes\[{QUOTED}\]\.(\w+)\s*(==|!=)\s*{QUOTED}")
CAPACITY = re.compile(rf"device\.capacity\[{QUOTED}\]\.(\w+)\.compareTo\(quantity\({QUOTED}\)\)\s*(>=|>|<=|<|==)\s*0")
STORED = {"type": "type", "productName": "product", "profile": "profile", "uuid": "uuid", "parentUUID": "parent_uuid"}
LONGEST = 80  # characters of selectors in a name


@dataclass(frozen=True, slots=True)
class DeviceTest:
    field: str  # driver, type, product, profile, uuid, parent_uuid, memory_bytes
    operator: str
    value: str | int
    driver: str = ""  # whose attribute or capacity it is; blank: of any

    def holds(self, driver: str, device: Mapping[str, Any]) -> bool:
        if self.driver and self.driver != driver:
            return False
        has = driver if self.field == "driver" else device.get(self.field)
        if has is None or has == "":
            return False
        if isinstance(self.value, int):
            return isinstance(has, int) and _compares(has, self.operator, self.value)
        return (has == self.value) is (self.operator == "==")

    @property
    def text(self) -> str:
        return f"{self.field} {self.operator} {self.value}"


@dataclass(frozen=True, slots=True)
class DeviceDemand:
    name: str  # devices of gpu.nvidia.com (product == NVIDIA H100)
    tests: tuple[DeviceTest, ...]

    @property
    def driver(self) -> str:
        """Returns the only driver whose devices match. Blank: any may."""
        return next((str(each.value) for each in self.tests if each.field == "driver"), "")

    def overlaps(self, other: "DeviceDemand") -> bool:
        """Tells whether one device may match both."""
        return not self.driver or not other.driver or self.driver == other.driver

    def matches(self, driver: str, device: Mapping[str, Any]) -> bool:
        return all(each.holds(driver, device) for each in self.tests)


def read_device_demand(device_class: str, of_class: Sequence[str], own: Sequence[str]) -> DeviceDemand | None:
    """Reads the selectors of a class and of a request. None: one of them is not evaluated here."""
    read = [_read_selector(each) for each in own]
    tests = [*map(_read_selector, of_class), *read]
    if None in tests:
        return None
    told = ", ".join(test.text for each in read for test in each or ())
    more = f" ({told[:LONGEST]})" if told else ""
    return DeviceDemand(f"{PREFIX}{device_class}{more}", tuple(test for each in tests for test in each or ()))


def _read_selector(expression: str) -> tuple[DeviceTest, ...] | None:
    found = tuple(_read_tests(expression))
    return None if None in found else tuple(each for each in found if each)


def _read_tests(expression: str) -> Iterator[DeviceTest | None]:
    for part in expression.split("&&"):
        text = part.strip()
        if match := DRIVER.fullmatch(text):
            yield DeviceTest("driver", "==", match[1] or match[2] or "")
        elif match := ATTRIBUTE.fullmatch(text):
            domain, name, value = match[1] or match[2] or "", match[3], match[5] or match[6] or ""
            yield DeviceTest(STORED[name], match[4], value, domain) if name in STORED else None
        elif match := CAPACITY.fullmatch(text):
            amount = whole_quantity(match[4] or match[5])
            is_memory = match[3] == "memory" and amount is not None
            yield DeviceTest("memory_bytes", match[6], amount or 0, match[1] or match[2] or "") if is_memory else None
        else:
            yield None


def _compares(has: int, operator: str, value: int) -> bool:
    return {
        ">=": has >= value, ">": has > value, "<=": has <= value, "<": has < value, "==": has == value
    }[operator]  # fmt: skip
