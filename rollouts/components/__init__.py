"""What can be changed. To add one: one new file here, one new line below."""

from rollouts.components.driver_crd import DriverCrd

COMPONENTS = {component.key: component for component in (DriverCrd,)}
