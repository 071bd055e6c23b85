"""Which pods a drain takes: k8s.io/kubectl/pkg/drain filters, in their order."""

from collections.abc import Callable
from dataclasses import dataclass, field

from simulator import selectors
from simulator.actors.gpu_operator.policy import Eviction
from simulator.actors.objects import Obj, annotations, controller, is_finished, labels, name, namespace, spec

MIRROR = "kubernetes.io/config.mirror"
LOCAL = "cannot delete Pods with local storage (use --delete-emptydir-data to override)"
UNMANAGED = "cannot delete Pods that declare no controller (use --force to override)"


@dataclass
class Picked:
    pods: list[Obj] = field(default_factory=list)
    complaints: dict[str, list[str]] = field(default_factory=dict)

    def error(self) -> str:
        return "; ".join(f"{words}: {', '.join(pods)}" for words, pods in self.complaints.items())


def pick(pods: list[Obj], rules: Eviction, is_wanted: Callable[[Obj], bool]) -> Picked:
    """What may be evicted, and what stands in the way. DaemonSet and mirror pods are never taken."""
    picked = Picked()
    selector = selectors.parse(rules.selector)
    for pod in pods:
        if not selector.matches(labels(pod)) or _is_left_alone(pod):
            continue
        complaint = _complaint(pod, rules)
        if complaint:
            picked.complaints.setdefault(complaint, []).append(f"{namespace(pod)}/{name(pod)}")
        elif is_wanted(pod):
            picked.pods.append(pod)
    return picked


def _is_left_alone(pod: Obj) -> bool:
    owner = controller(pod)
    is_daemon = owner is not None and owner["kind"] == "DaemonSet" and not is_finished(pod)
    return is_daemon or MIRROR in annotations(pod)


def _complaint(pod: Obj, rules: Eviction) -> str:
    if is_finished(pod):
        return ""
    if not rules.deletes_empty_dir and any("emptyDir" in volume for volume in spec(pod).get("volumes") or ()):
        return LOCAL
    if not rules.is_forced and controller(pod) is None:
        return UNMANAGED
    return ""
