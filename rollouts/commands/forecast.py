"""The forecast of a plan: what it disrupts, and how long it takes, from rows of now."""

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, Q

from fleet.allocation.physical import physical_of
from fleet.models import Pod
from gpu.upgrade_controller import LOOKS_EVERY
from operations.tenants.disruption_cost import total, uncounted
from rollouts.commands.duration import Duration
from rollouts.preflight.subject import PreflightSubject
from rollouts.preflight.warm_up import WarmUp, warm_ups


@dataclass(frozen=True)
class Forecast:
    """The disruption by the plan now; values from pods are None where pods were never read."""

    nodes: int
    gpus: int | None  # None: nobody says how many any of the nodes has
    uncounted_nodes: int  # of which nobody says it
    pods: int | None
    jobs: int | None  # that end whole, for one pod of theirs
    gpu_hours: float | None  # of work that is lost at most, every job once, since its pods started. None: all uncounted
    restarts: int | None  # pods of services: no work of theirs is lost
    uncounted_pods: int | None  # whose GPU-hours are not in it: of slices, shares and claims
    namespaces: list[str] | None
    pods_with_local_files: int | None  # emptyDir: lost where the operator may delete them, in the way where it may not
    unmanaged_pods: int | None
    warm_ups: list[WarmUp] | None  # of workloads that take long until they are Ready again, the longest first
    waits_for_operator: timedelta  # at most, beside what the nodes need: it looks at each wave every two minutes
    duration: Duration


def forecast_of(subject: PreflightSubject, duration: Duration, *, waves: int) -> Forecast:
    plan, picks = subject.plan, subject.picks
    nodes, harms = picks.nodes, [picks.harms[node.name] for node in picks.nodes]
    physical = physical_of(nodes)
    uids = [node.uid for node in nodes]
    pods = Pod.objects.filter(cluster=plan.cluster_id, node__uid__in=uids, deleted_at=None).tenants().not_done()
    counted = pods.aggregate(
        all=Count("pk"), local_files=Count("pk", Q(has_empty_dir=True)), unmanaged=Count("pk", Q(owner_kind=""))
    )
    by_pods = {
        "pods": counted["all"],
        "jobs": len({job.name for harm in harms for job in harm.jobs}),
        "gpu_hours": None if uncounted(harms) and not total(harms) else total(harms),
        "restarts": sum(harm.restarts for harm in harms),
        "uncounted_pods": uncounted(harms),
        "namespaces": sorted(pods.order_by().values_list("namespace", flat=True).distinct()),
        "pods_with_local_files": counted["local_files"],
        "unmanaged_pods": counted["unmanaged"],
        "warm_ups": warm_ups(subject.pods),
    }
    return Forecast(
        nodes=len(nodes),
        gpus=physical.known,
        uncounted_nodes=physical.uncounted,
        **(by_pods if all(harm.is_known for harm in harms) else dict.fromkeys(by_pods)),
        waits_for_operator=waves * LOOKS_EVERY,
        duration=duration,
    )
