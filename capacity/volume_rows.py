"""The volumes of waiting pods, from the mirror."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from capacity.wait_reasons.label_requirements import LabelRequirement, Term, read_terms_of_nodes
from capacity.wait_reasons.pod_volumes import ClaimState, ClaimVolume
from capacity.wait_reasons.requirements import WaitingPod
from fleet.models import Bookmark, PersistentVolume, PersistentVolumeClaim, StorageClass
from kube.resources import PERSISTENT_VOLUMES, STORAGE_CLASSES, VOLUME_CLAIMS

KINDS = (VOLUME_CLAIMS.name, PERSISTENT_VOLUMES.name, STORAGE_CLASSES.name)


def with_volumes(cluster_id: int, pods: Mapping[str, WaitingPod]) -> dict[str, WaitingPod]:
    """Returns the pods with their volumes. No query without claims; else four at most."""
    named = {name for pod in pods.values() for name in pod.volume_claims}
    if not named or not Bookmark.objects.knows_all(cluster_id, *KINDS):
        return dict(pods)
    namespaces = {pod.namespace for pod in pods.values() if pod.volume_claims}
    claims = {
        (row.namespace, row.name): row
        for row in PersistentVolumeClaim.objects.filter(cluster=cluster_id, namespace__in=namespaces, name__in=named)
    }
    bound = {row.volume for row in claims.values() if row.volume}
    volumes = {row.name: row for row in PersistentVolume.objects.filter(cluster=cluster_id, name__in=bound)}
    classes = {row.name: row for row in StorageClass.objects.filter(cluster=cluster_id)}
    found = {}
    for uid, pod in pods.items():
        its = [_claim_volume(name, claims.get((pod.namespace, name)), volumes, classes) for name in pod.volume_claims]
        found[uid] = replace(pod, volumes=tuple(its))
    return found


def _claim_volume(
    name: str,
    claim: PersistentVolumeClaim | None,
    volumes: Mapping[str, PersistentVolume],
    classes: Mapping[str, StorageClass],
) -> ClaimVolume:
    if claim is None:
        return ClaimVolume(name, ClaimState.MISSING)
    if claim.is_leaving:
        return ClaimVolume(name, ClaimState.LEAVING, claim.volume)
    if claim.volume:
        row = volumes.get(claim.volume)  # None: every node reaches it
        terms = read_terms_of_nodes(row.node_affinity) if row else ()
        return ClaimVolume(name, ClaimState.BOUND, claim.volume, terms=terms, zones=_zones(row.zones if row else {}))
    its, title = classes.get(claim.storage_class), claim.storage_class
    if its is None or not its.waits_for_pod:
        return ClaimVolume(name, ClaimState.UNBOUND, storage_class=title)
    return ClaimVolume(name, ClaimState.WAITS_FOR_NODE, storage_class=title, terms=read_terms_of_nodes(its.topologies))


def _zones(zones: Mapping[str, Sequence[str]]) -> Term:
    return tuple(LabelRequirement(key, "In", tuple(values)) for key, values in sorted(zones.items()))
