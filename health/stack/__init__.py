"""What of the GPU stack runs on a node, what does not and why, and which version each place names."""

from health.stack.driver_versions import DriverVersionRole, DriverVersions, DriverVersionSource
from health.stack.on_node import OperandOnNode
from health.stack.reading import NodeStack, read_stack

__all__ = ["DriverVersionRole", "DriverVersionSource", "DriverVersions", "NodeStack", "OperandOnNode", "read_stack"]
