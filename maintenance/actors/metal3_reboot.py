"""Metal3: the annotation `reboot.metal3.io` on the BareMetalHost of the node.

metal3-io/metal3-docs, user guide, reboot annotation: the operator removes it once power is back. The host is named by
the node's providerID, `metal3://NAMESPACE/HOST/MACHINE` (cluster-api-provider-metal3, SetDefaultProviderID). Read
2026-11-29.
"""

import json
from typing import ClassVar

from maintenance.actors.base import AnnotationActor, RepairTask
from maintenance.lifecycle import RepairKind


class Metal3Reboot(AnnotationActor):
    key: ClassVar[str] = "metal3-reboot"
    title: ClassVar[str] = "Metal3 reboot"
    kinds: ClassVar[frozenset[RepairKind]] = frozenset({RepairKind.REBOOT})
    waiting: ClassVar[str] = "Metal3 reboots the host. The case continues by itself."
    object_kind: ClassVar[str] = "BareMetalHost"
    group_suffix: ClassVar[str] = "metal3.io"
    annotation: ClassVar[str] = "reboot.metal3.io"

    def host_of(self, provider_id: str) -> tuple[str, str] | None:
        scheme, _, rest = provider_id.partition("://")
        parts = rest.split("/")
        return (parts[0], parts[1]) if scheme == "metal3" and len(parts) == 3 and all(parts) else None

    def value(self, task: RepairTask) -> str:
        return json.dumps({"mode": "soft", "by": f"quarterdeck/case-{task.case}"})
