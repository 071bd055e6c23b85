"""What can be wrong with the cluster, by name. A fault knows no threshold of anybody who watches it."""

from simulator.faults.api_gone import ApiGone
from simulator.faults.bad_driver import BadDriver
from simulator.faults.board import Board, Fault
from simulator.faults.broken_operand import BrokenOperand
from simulator.faults.error_500 import Error500
from simulator.faults.flapping_node import FlappingNode
from simulator.faults.gone_410 import Gone410
from simulator.faults.lost_gpus import LostGpus
from simulator.faults.slow_api import SlowApi
from simulator.faults.stuck_drain import StuckDrain
from simulator.faults.tainted_node import TaintedNode

ON_THE_FLEET: tuple[type[Fault], ...] = (BadDriver, BrokenOperand, FlappingNode, LostGpus, StuckDrain, TaintedNode)
ON_THE_API: tuple[type[Fault], ...] = (ApiGone, Error500, Gone410, SlowApi)
FAULTS: dict[str, type[Fault]] = {fault.key: fault for fault in (*ON_THE_FLEET, *ON_THE_API)}

__all__ = [
    "FAULTS",
    "BadDriver",
    "Board",
    "BrokenOperand",
    "Fault",
    "FlappingNode",
    "LostGpus",
    "StuckDrain",
    "TaintedNode",
]
