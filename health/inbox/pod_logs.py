"""A person's request for the last lines of a pod's log: rights, the audit entry, and the nudge to a worker."""

from datetime import datetime

from fleet.messages import wake
from fleet.models import Pod
from health.sources.pod_log_answers import PodLogAnswer, save_answer
from people.models import AuditEntry, User
from people.rights import NotAllowed, Permission, why_not

TASK = "health.tasks.read_pod_log"
EXPIRES_S = 30.0
NO_REDIS = "Redis does not answer: the log cannot be handed over."


def why_not_log(user: User, pod: Pod) -> str:
    """Returns why the user may not read the pod's log. Blank: they may."""
    if not pod.node_name:
        return "The pod has no node, so it has no log."
    return why_not(user, Permission.RUN, cluster_id=pod.cluster_id, where=f"cluster {pod.cluster.name}")


def ask_log(pod: Pod, *, user: User, now: datetime) -> None:
    """Records the request and wakes a worker.

    :raises NotAllowed: with the sentence of `why_not_log`
    :raises SnapshotsUnavailable: when Redis does not answer
    """
    if refusal := why_not_log(user, pod):
        raise NotAllowed(refusal)
    save_answer(pod.uid, user.pk, PodLogAnswer(pod.stuck_container, now.isoformat()))
    evidence = {"cluster": pod.cluster.name, "pod": str(pod), "container": pod.stuck_container}
    AuditEntry.record(f"pod:{pod.uid}"[:64], verb="pod.read-log", actor=user.username, evidence=evidence, now=now)
    wake.queue(TASK, queue="default", kwargs={"pod_id": pod.pk, "user_id": user.pk}, expires=EXPIRES_S)
