"""What can be changed, and by which object. To add one: one new file here, one new line below."""

from collections.abc import Callable, Mapping

from rollouts.components.base import Component
from rollouts.components.driver_crd import DriverCrd
from rollouts.components.driver_policy import DriverPolicy

COMPONENTS: Mapping[tuple[str, str], Callable[[str], Component]] = {
    (component.key, component.kind): component for component in (DriverCrd, DriverPolicy)
}
DRIVER_OBJECT_KINDS = frozenset(kind for _, kind in COMPONENTS)


def component_of(key: str, kind: str, name: str) -> Component:
    """:raises KeyError: where nothing here changes it by objects of this kind"""
    return COMPONENTS[key, kind](name)
