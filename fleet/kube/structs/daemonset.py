from fleet.kube.structs.meta import Seen, Struct
from fleet.kube.structs.pod import Container


class TemplateMeta(Struct, frozen=True):
    labels: dict[str, str] | None = None


class TemplateSpec(Struct, frozen=True):
    containers: list[Container] | None = None
    node_selector: dict[str, str] | None = None


class Template(Struct, frozen=True):
    metadata: TemplateMeta = TemplateMeta()
    spec: TemplateSpec = TemplateSpec()


class DaemonSetSpec(Struct, frozen=True):
    template: Template = Template()


class DaemonSetStatus(Struct, frozen=True):
    observed_generation: int = 0
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    number_ready: int = 0
    updated_number_scheduled: int = 0
    number_unavailable: int = 0


class DaemonSetSeen(Seen, frozen=True):
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def pod_labels(self) -> dict[str, str]:
        return self.spec.template.metadata.labels or {}

    @property
    def is_current(self) -> bool:
        """Whether its numbers are about the template it has now."""
        return self.status.observed_generation >= self.metadata.generation


class RevisionSeen(Seen, frozen=True):
    """A ControllerRevision: one template that a DaemonSet has had."""

    revision: int = 0

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def daemonset_uid(self) -> str:
        owner = self.metadata.owner
        return owner.uid if owner and owner.kind == "DaemonSet" else ""

    @property
    def revision_hash(self) -> str:
        """What pods made from this template carry as `controller-revision-hash`."""
        return self.labels.get("controller-revision-hash", "") or self.name.rsplit("-", maxsplit=1)[-1]
