"""The components that a plan can change. To add one, add a file here and a line below."""

from collections.abc import Callable, Mapping

from rollouts.components.base import Component
from rollouts.components.driver_crd import DriverCrd
from rollouts.components.driver_policy import DriverPolicy

COMPONENTS: Mapping[tuple[str, str], Callable[[str], Component]] = {
    (component.key, component.kind): component for component in (DriverCrd, DriverPolicy)
}
DRIVER_OBJECT_KINDS = frozenset(kind for _, kind in COMPONENTS)


def component_of(key: str, kind: str, name: str) -> Component:
    """Returns the component.

    :raises KeyError: when no component is changed by objects of this kind
    """
    return COMPONENTS[key, kind](name)
