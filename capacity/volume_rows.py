"""The volumes of waiting pods, and those of pods on nodes, from the mirror."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from capacity.wait_reasons.label_requirements import LabelRequirement, Term, read_terms_of_nodes
from capacity.wait_reasons.pod_volumes import ClaimState, ClaimVolume, DriverVolumes
from capacity.wait_reasons.requirements import WaitingPod
from fleet.models import Bookmark, CsiNode, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from kube.resources import CSI_NODES, PERSISTENT_VOLUMES, STORAGE_CLASSES, VOLUME_CLAIMS

IN_TREE = "kubernetes.io/"  # provisioners of former in-tree drivers, whose CSI driver only their volumes name
WITHOUT_DRIVER = "kubernetes.io/no-provisioner"
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
        terms, zones = (read_terms_of_nodes(row.node_affinity), _zones(row.zones)) if row else ((), ())
        driver = row.driver if row else _driver_of_class(claim.storage_class, classes)
        return ClaimVolume(name, ClaimState.BOUND, claim.volume, driver=driver, terms=terms, zones=zones)
    its, title = classes.get(claim.storage_class), claim.storage_class
    if its is None or not its.waits_for_pod:
        return ClaimVolume(name, ClaimState.UNBOUND, storage_class=title)
    driver, terms = _driver_of_class(title, classes), read_terms_of_nodes(its.topologies)
    return ClaimVolume(name, ClaimState.WAITS_FOR_NODE, storage_class=title, driver=driver, terms=terms)


def _zones(zones: Mapping[str, Sequence[str]]) -> Term:
    return tuple(LabelRequirement(key, "In", tuple(values)) for key, values in sorted(zones.items()))


def _driver_of_class(storage_class: str, classes: Mapping[str, StorageClass]) -> str | None:
    """Returns the CSI driver of the volumes of a class. Blank: none; None: unknown."""
    if not storage_class:
        return ""
    provisioner = classes[storage_class].provisioner if storage_class in classes else ""
    if provisioner == WITHOUT_DRIVER:
        return ""
    return provisioner if provisioner and not provisioner.startswith(IN_TREE) else None


def volumes_of_drivers(cluster_id: int, drivers: Collection[str]) -> Mapping[str, DriverVolumes] | None:
    """Returns the limits of these CSI drivers, and their volumes of pods on nodes that have one.

    No query without drivers; two where no node limits them, else six. None: CSINodes were never read.
    """
    if not drivers:
        return {}
    if not Bookmark.objects.knows_all(cluster_id, CSI_NODES.name):
        return None
    limits: dict[str, dict[str, int]] = defaultdict(dict)
    for name, its in CsiNode.objects.filter(cluster=cluster_id).values_list("name", "limits"):
        for driver in drivers:
            if driver in its:
                limits[driver][name] = its[driver]
    used = _used_volumes(cluster_id, limits) if limits else {}
    return {driver: DriverVolumes(nodes, used.get(driver, {})) for driver, nodes in limits.items()}


def _used_volumes(cluster_id: int, drivers: Collection[str]) -> Mapping[str, Mapping[str, frozenset[str]]]:
    """Returns the volumes by driver and node that pods there use. Those without a volume count by their claim."""
    pods = Pod.objects.filter(cluster=cluster_id, node__isnull=False, exclusions__has_key="volume_claims").not_done()
    named = list(pods.order_by().values_list("node_name", "namespace", "exclusions__volume_claims"))
    spaces, claimed = {namespace for _, namespace, _ in named}, {name for *_, names in named for name in names}
    rows = PersistentVolumeClaim.objects.filter(cluster=cluster_id, namespace__in=spaces, name__in=claimed).order_by()
    claims = {(row.namespace, row.name): row for row in rows}
    bound = {row.volume for row in claims.values() if row.volume}
    volumes = PersistentVolume.objects.filter(cluster=cluster_id, name__in=bound)
    driver_of = dict(volumes.values_list("name", "driver"))
    classes = {row.name: row for row in StorageClass.objects.filter(cluster=cluster_id)}
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for node, namespace, names in named:
        for claim in filter(None, (claims.get((namespace, name)) for name in names)):
            by_class = _driver_of_class(claim.storage_class, classes)
            driver = driver_of.get(claim.volume, by_class) if claim.volume else by_class
            if driver and driver in drivers:
                found[driver][node].add(claim.volume or f"{namespace}/{claim.name}")
    return {driver: {node: frozenset(its) for node, its in nodes.items()} for driver, nodes in found.items()}
