"""Which GPU operator acts in each cluster."""

from fleet.models import DriverObject, Workload

CLUSTER_WIDE = ("ClusterPolicy", "GPUCluster")


def operator_versions() -> dict[int, str]:
    """By cluster: as its ClusterPolicy or GPUCluster is labelled, else as its own Deployment says. Two queries."""
    deployed = Workload.objects.filter(kind="Deployment").exclude(operator_version="").order_by("-name")
    labelled = DriverObject.objects.filter(kind__in=CLUSTER_WIDE).exclude(operator_version="").order_by("-kind")
    return dict(deployed.values_list("cluster", "operator_version")) | dict(
        labelled.values_list("cluster", "operator_version")
    )
