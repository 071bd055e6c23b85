"""What can be wrong with the cluster, by name. A fault knows no threshold of anybody who watches it."""

from simulator.faults.bad_driver import BadDriver
from simulator.faults.board import Board, Fault
from simulator.faults.flapping_node import FlappingNode
from simulator.faults.stuck_drain import StuckDrain

FAULTS: dict[str, type[Fault]] = {fault.key: fault for fault in (BadDriver, FlappingNode, StuckDrain)}

__all__ = ["FAULTS", "BadDriver", "Board", "Fault", "FlappingNode", "StuckDrain"]
