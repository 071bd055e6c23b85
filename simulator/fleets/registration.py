"""Kubelets that start again: each writes on its Node which release it is, and which container runtime it has."""

from simulator.actors.cluster import Cluster
from simulator.actors.objects import name, status
from simulator.kinds import NODE
from simulator.versions import CONTAINERD, KUBERNETES

RELEASES = {"kubeletVersion": KUBERNETES, "containerRuntimeVersion": f"containerd://{CONTAINERD}"}


def register_again(cluster: Cluster) -> None:
    """So that a cluster that another version of the simulator kept has no kubelet too old for this API server."""
    for node in cluster.list(NODE)[0]:
        if not RELEASES.items() <= (status(node).get("nodeInfo") or {}).items():
            cluster.patch(NODE, name(node), {"status": {"nodeInfo": RELEASES}}, subresource="status")
