"""The stop of a cluster by kubectl alone: a ConfigMap in our namespace (Z33)."""

from fleet.models import Cluster
from kube import client

STOP_SWITCH = "quarterdeck-stop"


def stopped_by_switch(cluster: Cluster, connection: client.Connection) -> str:
    """Returns the reason in the stop's ConfigMap of any cluster; empty means there is none."""
    switch = client.get_config_map(connection, cluster.own_namespace, STOP_SWITCH)
    if switch is None:
        return ""
    reason = switch.values.get("reason", "no reason given")
    return f"ConfigMap {cluster.own_namespace}/{STOP_SWITCH} in the cluster stops everything: {reason}."
