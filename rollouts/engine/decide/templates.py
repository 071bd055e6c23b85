"""The driver pods are no longer made as it was approved: somebody else changed their template (hazard Z11). Pure."""

from rollouts.engine.decide.acts import Decision
from rollouts.engine.snapshot import Snapshot


def changed_template(snapshot: Snapshot) -> str:
    """Why the plan halts, for a person."""
    what = f"{snapshot.template_change}: driver pods are no longer made as it was approved."
    return f"{what} Put it back, or resume to take it as it is: then each stage to come is approved again."


def ask_which_template(snapshot: Snapshot) -> Decision:
    """The old version is written, and makes other driver pods than it did: waiting for the earlier ones has no end."""
    old = snapshot.from_version
    asks = f"{old} is back in the object, but not its earlier template. {snapshot.template_change}."
    helps = "Put that back and resume, or resume to go on as it is: every node of the object then gets this template."
    return Decision(f"{asks} {helps}", pause_reason=f"{asks} {helps}")
