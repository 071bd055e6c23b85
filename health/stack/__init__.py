"""What of the GPU stack runs on a node, what does not and why, and which version each place names."""

from health.stack.driver_versions import DriverVersionRole, DriverVersions, Said
from health.stack.on_node import OperandOnNode
from health.stack.reading import NodeStack, read_stack

__all__ = ["DriverVersionRole", "DriverVersions", "NodeStack", "OperandOnNode", "Said", "read_stack"]
