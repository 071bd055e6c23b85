"""The steps that the demo prints for a newcomer, in order."""

from demo.parts import FAULTY, NEWER, Fleet
from demo.timetable import COOL_MIN, FALLEN_MIN, HOT_MIN

BY_POLICY = "cluster-policy"  # the fleet, and the object that says the one driver version of all its nodes
AROUND = "Sign in as operator and open a node: its stack, its GPUs, its pods, what happened to it."
WATCH = f"""
Sign in as operator and watch the fleet: a GPU overheats from minute {HOT_MIN:g} to {COOL_MIN:g}, and at minute \
{FALLEN_MIN:g} another falls off the bus (Xid 79).
Open Findings: each one says what to do. Open the GPU that it names: its temperature, its pods, what happened to it.
Open the cluster demo: two pods of robotics do not run, each for another reason. A quota rejects pods of students.
Open GPUs, the least busy first: notebooks/left-open holds two and does nothing. After two whole hours it is a finding.
Open Usage and cost: GPU-hours and money by use. The two weeks before today are made up from the pods of now.
"""


def first_steps(fleet: Fleet, *, is_still: bool = False) -> list[str]:
    """Return the steps, with the driver objects that this fleet has. `is_still`: where nothing happens by itself."""
    good, bad = (fleet.name, fleet.name) if fleet.name == BY_POLICY else ("a100", "h100")
    return [
        *([AROUND] if is_still else WATCH.strip().splitlines()),
        f"Draft a plan that takes {good} to {NEWER}; make its soaks 0.5 minutes; look at its preview, then start it.",
        "Sign in as approver in another browser and let the canary go; watch the waves and the gates.",
        "Halt it in the middle, see what is held and why, then resume it or roll it back.",
        f"Take {bad} to {FAULTY}: tenants' pods crash under it on one kernel. It stops in the canary.",
    ]
