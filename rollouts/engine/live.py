"""What is about to be written is asked of the API server itself: rows are of different moments (hazard Z25)."""

from collections.abc import Mapping
from dataclasses import dataclass

from fleet import kube
from fleet.kube.structs import ConfigMapSeen
from rollouts.models import Plan
from rollouts.queries import driver_daemonsets

STOP_SWITCH = "quarterdeck-stop"  # a ConfigMap of this name in our namespace stops everything (hazard Z33)


@dataclass(frozen=True)
class Live:
    """What the API server itself said at the start of this round."""

    object_version: str
    hashes: Mapping[str, str]  # DaemonSet uid → hash of its newest template
    unsettled: tuple[str, ...]
    stopped_because: str


def ask_cluster(plan: Plan, connection: kube.Connection) -> Live:
    """:raises ClusterError: when the cluster does not answer: then nothing is decided"""
    switch = kube.get_config_map(connection, plan.cluster.own_namespace, STOP_SWITCH)
    seen = kube.get_driver_object(connection, plan.object_kind, plan.object_name)
    if seen.uid != plan.object_uid:
        raise kube.Absent(f"{plan.object_kind} {plan.object_name} is another object than the one this plan is for.")
    known = driver_daemonsets(plan)
    daemonsets = [
        daemonset
        for namespace in sorted({row.namespace for row in known})
        for daemonset in kube.list_daemonsets(connection, namespace=namespace)
        if daemonset.metadata.owner and daemonset.metadata.owner.uid == plan.object_uid
    ]
    uids = {daemonset.uid for daemonset in daemonsets}
    revisions = [
        revision
        for namespace in sorted({daemonset.namespace for daemonset in daemonsets})
        for revision in kube.list_revisions(connection, namespace=namespace)
        if revision.daemonset_uid in uids
    ]
    newest = {one.daemonset_uid: one.revision_hash for one in sorted(revisions, key=lambda one: one.revision)}
    return Live(
        object_version=seen.driver.version or "",
        hashes=newest,
        unsettled=tuple(one.name for one in daemonsets if not one.is_current),
        stopped_because=_stopped(plan, switch),
    )


def _stopped(plan: Plan, switch: ConfigMapSeen | None) -> str:
    if switch is None:
        return ""
    reason = switch.values.get("because", "no reason given")
    return f"ConfigMap {plan.cluster.own_namespace}/{STOP_SWITCH} in the cluster stops everything: {reason}."
