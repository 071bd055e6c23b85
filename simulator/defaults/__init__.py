"""The members that the API server fills in: a table kind -> defaulter, each pure and idempotent."""

from collections.abc import Callable, Mapping
from typing import Any

from simulator.defaults.cluster import filled_budget, filled_namespace, filled_node, filled_secret
from simulator.defaults.pod import filled_pod
from simulator.defaults.workload import filled_daemon_set, filled_deployment, filled_job, filled_replicas
from simulator.kinds import Kind

Obj = dict[str, Any]

DEFAULTS: Mapping[tuple[str, str], Callable[[Obj], Obj]] = {
    ("", "namespaces"): filled_namespace,
    ("", "nodes"): filled_node,
    ("", "pods"): filled_pod,
    ("", "secrets"): filled_secret,
    ("apps", "daemonsets"): filled_daemon_set,
    ("apps", "deployments"): filled_deployment,
    ("apps", "replicasets"): filled_replicas,
    ("apps", "statefulsets"): filled_replicas,
    ("batch", "jobs"): filled_job,
    ("policy", "poddisruptionbudgets"): filled_budget,
}


def filled(kind: Kind, obj: Obj) -> Obj:
    fill = DEFAULTS.get(kind.shelf)
    return obj if fill is None else fill(obj)
