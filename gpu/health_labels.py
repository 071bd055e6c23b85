"""Labels by which a checker of GPUs reports a node's health, read as conditions.

IBM/autopilot, README "Deep Diagnostics and Node Labeling", and gpu-dcgm/entrypoint.py: gpuhealth is PASS, WARN, ERR,
TESTING or EVICT; dcgm.level.3 is PASS or ERR with a time, the failed tests and their GPUs. Periodic checks do not
change EVICT: only a test of level 3 that passes does.
"""

from collections.abc import Mapping

AUTOPILOT = "IBM Autopilot"
HEALTH = "autopilot.ibm.com/gpuhealth"
DIAGNOSTICS = "autopilot.ibm.com/dcgm.level.3"
FAILED, DOUBTED, PASSED = frozenset({"ERR", "EVICT"}), "WARN", "PASS"
_FAILED_TESTS = "ERR_"


def health_of(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns the value of the health label and the failed diagnostics. None: no checker writes it."""
    value = labels.get(HEALTH, "")
    said = labels.get(DIAGNOSTICS, "")
    return (value, f"DCGM level 3: {said}" if said.startswith(_FAILED_TESTS) else "") if value else None
