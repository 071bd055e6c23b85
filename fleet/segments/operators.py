"""Which GPU operator acts in each cluster."""

from itertools import chain

from fleet.models import DriverObject, Workload

CLUSTER_WIDE = ("ClusterPolicy", "GPUCluster")


def operator_versions() -> dict[int, str]:
    """By cluster: as its ClusterPolicy or GPUCluster is labelled, else as its own Deployment says. Two queries."""
    deployed = Workload.objects.operators().order_by("-name")
    labelled = DriverObject.objects.filter(kind__in=CLUSTER_WIDE).exclude(operator_version="").order_by("-kind")
    said = (rows.values_list("cluster", "operator_version") for rows in (deployed, labelled))
    return dict(chain.from_iterable(said))
