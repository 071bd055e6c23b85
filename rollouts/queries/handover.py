from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edges.digests import digest
from fleet.models import DriverObject
from rollouts.models import Plan


@dataclass(frozen=True)
class ObjectOfOthers:
    why_not: str  # why nobody has to decide; blank: somebody has
    version: str = ""  # version that the object requests
    says: str = ""
    template_change: Mapping[str, Any] = field(default_factory=dict)  # by spec field, as digests; empty: none

    @property
    def seen(self) -> str:
        """Returns a hash of the version and the whole template, since the sentence names only the fields."""
        return digest([self.version, self.template_change])


def handover_of(plan: Plan) -> ObjectOfOthers:
    """Returns the object's state from rows; rounds ask the cluster itself. One query."""
    named = f"{plan.object_kind} {plan.object_name}"
    row = DriverObject.objects.filter(cluster=plan.cluster_id, uid=plan.object_uid).first()
    if row is None:
        return ObjectOfOthers(f"{named} is gone, so its nodes cannot be handed over.")
    ours = {plan.from_version} | ({plan.to_version} if plan.write_intended_at else set())
    changed = plan.template_change.get("says", "")
    if row.version in ours and not changed and not plan.releases_to_foreign_version:
        return ObjectOfOthers(f"Nobody else has changed {named}, so this plan releases its nodes by itself.")
    if not row.version:
        return ObjectOfOthers(f"{named} names no version. Write one into it first.")
    if row.version == plan.handed_to and not changed:
        return ObjectOfOthers(f"Its nodes are already handed over to {row.version}.")
    says = f"The object requests {row.version}. {changed}".strip()
    return ObjectOfOthers("", row.version, says if says.endswith(".") else f"{says}.", plan.template_change)
