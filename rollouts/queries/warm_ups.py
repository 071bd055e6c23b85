"""The warm-up of the GPU pods that came to the changed nodes of a plan."""

from datetime import datetime

from capacity.warm_up import Started, quickest, workload_of
from fleet.models import Pod
from rollouts.models import Plan
from rollouts.queries.change_times import changed_targets


def slowest_warm_up(plan: Plan, *, by: datetime) -> float | None:
    """Returns the warm-up in seconds of the slowest workload that was Ready on a changed node by then. Two queries.

    None if no pod that still runs there tells it.
    """
    since = dict(changed_targets([plan.pk]).order_by().values_list("node_uid", "state_since"))
    if not since:
        return None
    pods = Pod.objects.filter(cluster=plan.cluster_id, node__uid__in=since, ready_since__lte=by).tenants()
    columns = ("owner_kind", "namespace", "owner_name", "name", "is_ready", "restarts", "started_at", "ready_since")
    found = quickest(
        (workload_of(*row[1:5]), Started(*row[5:]))
        for row in pods.values_list("node__uid", *columns)
        if row[7] is not None and row[7] >= since[row[0]]
    )
    return max(found.values()).total_seconds() if found else None
