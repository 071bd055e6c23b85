"""Halts a plan when somebody else changes the template of the driver pods (Z11). Pure."""

from rollouts.engine.decide.acts import Decision
from rollouts.engine.snapshot import Snapshot


def changed_template(snapshot: Snapshot) -> str:
    """Returns why the plan halts."""
    what = f"{snapshot.template_change}: driver pods are no longer made as it was approved."
    return f"{what} Put it back, or resume to take it as it is: then each stage to come is approved again."


def ask_which_template(snapshot: Snapshot) -> Decision:
    """Asks a person: the old version is restored, but its pods differ from the recorded template."""
    old = snapshot.from_version
    asks = f"{old} is back in the object, but not its earlier template. {snapshot.template_change}."
    helps = "Put that back and resume, or resume to go on as it is: every node of the object then gets this template."
    return Decision(f"{asks} {helps}", pause_reason=f"{asks} {helps}")
