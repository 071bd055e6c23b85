"""The GPU stack of a node: operands that run or do not, with causes, and the versions that each place names."""

from health.stack.checklist import ChecklistAnswer, ChecklistItem, checklist_of, has_checklist
from health.stack.driver_versions import DriverVersionRole, DriverVersions, DriverVersionSource
from health.stack.node_operands import OperandOnNode
from health.stack.node_rows import NodeStack, read_stack, read_stacks

__all__ = [
    "ChecklistAnswer", "ChecklistItem", "DriverVersionRole", "DriverVersionSource", "DriverVersions", "NodeStack",
    "OperandOnNode", "checklist_of", "has_checklist", "read_stack", "read_stacks",
]  # fmt: skip
