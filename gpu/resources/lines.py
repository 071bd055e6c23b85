"""The table of a node's resources: expected, capacity, allocatable and requested, with the meaning of differences."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpu.resources.layout import Layout, Way
from gpu.resources.names import GPU, ResourceKind, Vendor, is_dra, vendor_of
from gpu.resources.offer import only_named
from gpu.resources.terms import in_words
from wording.numbers import either

Amounts = Mapping[str, int]


@dataclass(frozen=True)
class ResourceLine:
    name: str
    vendor: Vendor | None
    way: Way
    expected: int | None  # None: never seen under this layout
    capacity: int | None  # None: not reported by the node
    allocatable: int | None
    requested: int | None  # None: pods were never read
    only_named: int = 0  # whole GPUs that are cut but still reported by the device plugin
    is_reconfiguring: bool = False  # by the MIG manager: missing units are not lost
    alias: str = ""  # the resource under which another driver offers the same GPUs

    @property
    def kind(self) -> ResourceKind:
        return self.way.kind

    @property
    def missing(self) -> int:
        return 0 if self.is_reconfiguring else max(0, (self.expected or 0) - (self.allocatable or 0))

    @property
    def to_be_had(self) -> int:
        return max(0, (self.allocatable or 0) - self.only_named)

    @property
    def free(self) -> int | None:
        """Returns the free units. None: pods were never read."""
        return None if self.requested is None else max(0, self.to_be_had - self.requested)

    @property
    def is_second(self) -> bool:
        """Tells whether it duplicates a device plugin's resource, so that sums omit it."""
        return bool(self.alias) and is_dra(self.name)

    @property
    def differences(self) -> list[str]:
        """Returns sentences about deviations. Empty: none."""
        sentences = (
            *(
                (self._stopped_plugin_line(),)
                if self.is_reconfiguring
                else (self._missing_line(), self._sick(), self._left_over())
            ),
            self._overdrawn(),
            self._cut_away(),
            self._offered_twice(),
        )
        return [sentence for sentence in sentences if sentence]

    def _stopped_plugin_line(self) -> str:
        number = (self.expected or 0) - (self.allocatable or 0)
        return (
            f"{in_words(number, self.way)} unavailable while the MIG manager changes the layout." if number > 0 else ""
        )

    def _missing_line(self) -> str:
        number = (self.expected or 0) - (self.capacity or 0)
        if number <= 0:
            return ""
        lost = in_words(number, self.way)
        if not self.capacity:
            return f"{lost} missing: the {self._offerer} offers none. It does not run, or finds no GPU."
        return f"{lost} gone from the capacity. A GPU was probably lost before the last boot."

    def _sick(self) -> str:
        number = (self.capacity or 0) - (self.allocatable or 0)
        if number <= 0 or self.expected is None:
            return ""
        if not self.allocatable:
            return f"None is allocatable: the {self._offerer} is stopped, or reports every GPU as unhealthy."
        which = either(number, "it", "them")
        reported = f"taints {which}" if is_dra(self.name) else f"reports {which} as unhealthy"
        return f"{in_words(number, self.way)} in capacity, but not allocatable: the {self._offerer} {reported}."

    def _left_over(self) -> str:
        if self.expected is not None or not self.capacity or self.allocatable:
            return ""
        return "Left over from the earlier partitioning or sharing. The kubelet reports it for five more minutes."

    def _overdrawn(self) -> str:
        number = (self.requested or 0) - (self.allocatable or 0)
        if number <= 0:
            return ""
        return f"{number} more requested than allocatable: pods still use lost GPUs or the earlier layout."

    def _cut_away(self) -> str:
        if not self.only_named:
            return ""
        named = in_words(self.only_named, self.way)
        return (
            f"{named} offered as whole, but partitioned into slices. A pod that requests a whole GPU is placed "
            "here and gets none. Restart the node's device plugin."
        )

    def _offered_twice(self) -> str:
        if not self.alias:
            return ""
        return f"The same GPUs are also offered as {self.alias}, so a GPU can be allocated twice."

    @property
    def _offerer(self) -> str:
        return "DRA driver" if is_dra(self.name) else "device plugin"


def resource_lines(
    expected: Amounts,
    capacity: Amounts,
    allocatable: Amounts,
    requested: Amounts | None,
    layout: Layout,
    *,
    is_reconfiguring: bool = False,
) -> list[ResourceLine]:
    """Returns a line per resource that is expected, present or requested; expected ones first.

    `requested` None: the pods are unknown.
    """
    amounts = (expected, capacity, allocatable, requested or {})
    names = {name for column in amounts for name, amount in column.items() if amount}
    aliases = _aliases(capacity, layout)
    lines = [
        ResourceLine(
            name=name,
            vendor=vendor_of(name),
            way=layout.way(name),
            expected=expected.get(name),
            capacity=capacity.get(name),
            allocatable=allocatable.get(name),
            requested=None if requested is None else requested.get(name, 0),
            only_named=only_named(allocatable, layout) if name == GPU else 0,
            is_reconfiguring=is_reconfiguring,
            alias=aliases.get(name, ""),
        )
        for name in names
    ]
    return sorted(lines, key=lambda line: (-(line.expected or 0), line.name))


def _aliases(capacity: Amounts, layout: Layout) -> dict[str, str]:
    """Returns pairs of resources by which a device plugin and a DRA driver both offer one vendor's whole GPUs."""
    whole = [name for name, amount in capacity.items() if amount and layout.way(name).kind is ResourceKind.WHOLE]
    pairs = ((one, other) for one in whole for other in whole if is_dra(one) != is_dra(other))
    return {one: other for one, other in pairs if vendor_of(one) is vendor_of(other)}
