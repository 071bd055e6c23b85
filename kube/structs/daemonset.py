from kube.structs.meta import Seen, Struct
from kube.structs.node_affinity import Affinity, NodeSelectorTerm, Toleration
from kube.structs.pod import Container


class TemplateMeta(Struct, frozen=True):
    labels: dict[str, str] | None = None


class PodResourceClaim(Struct, frozen=True):
    """A pod's claim: an existing one, or one created from a template."""

    name: str = ""
    resource_claim_name: str | None = ""
    resource_claim_template_name: str | None = ""


class TemplateSpec(Struct, frozen=True):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    resource_claims: list[PodResourceClaim] | None = None

    @property
    def terms(self) -> list[NodeSelectorTerm]:
        """Returns the terms of the required node affinity. Empty: no requirement."""
        node_affinity = self.affinity.node_affinity if self.affinity else None
        return (node_affinity.required.node_selector_terms if node_affinity and node_affinity.required else None) or []


class PodTemplate(Struct, frozen=True):
    metadata: TemplateMeta | None = None
    spec: TemplateSpec = TemplateSpec()

    @property
    def labels(self) -> dict[str, str]:
        return (self.metadata.labels if self.metadata else None) or {}


class LabelSelector(Struct, frozen=True):
    match_labels: dict[str, str] | None = None


class DaemonSetSpec(Struct, frozen=True):
    selector: LabelSelector | None = None
    template: PodTemplate | None = None


class DaemonSetStatus(Struct, frozen=True):
    observed_generation: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    updated_number_scheduled: int = 0


class DaemonSetSeen(Seen, frozen=True):
    spec: DaemonSetSpec | None = None
    status: DaemonSetStatus = DaemonSetStatus()

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def template(self) -> PodTemplate:
        return (self.spec.template if self.spec else None) or PodTemplate()

    @property
    def pod_labels(self) -> dict[str, str]:
        return self.template.labels

    @property
    def node_selector(self) -> dict[str, str]:
        return self.template.spec.node_selector or {}

    @property
    def pod_selector(self) -> dict[str, str]:
        """Returns the labels by which the DaemonSet selects its pods, also those of earlier templates."""
        return (self.spec.selector.match_labels if self.spec and self.spec.selector else None) or {}

    @property
    def is_current(self) -> bool:
        """Tells whether its numbers refer to the current template."""
        return self.status.observed_generation >= self.metadata.generation


class RevisionSeen(Seen, frozen=True):
    """A ControllerRevision: one template that the DaemonSet has or had."""

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
        """Returns the label value `controller-revision-hash` of pods made from this template."""
        return self.labels.get("controller-revision-hash", "") or self.name.rsplit("-", maxsplit=1)[-1]
