"""Whether the GPU operator itself runs: without it nothing is rolled out, labelled or repaired."""

from django.db.models import Q

from fleet.models import Cluster, Pod, Workload

# gpu-operator, deployments/gpu-operator/templates/operator.yaml; OperatorHub's has only the second (#331).
ITS_PODS = Q(pod_labels__app="gpu-operator") | Q(**{"pod_labels__app.kubernetes.io/component": "gpu-operator"})


def operator_trouble(cluster: Cluster) -> str:
    """One query, and one more where something is wrong. Blank: it runs, or is not seen."""
    deployments = list(Workload.objects.filter(ITS_PODS, cluster=cluster, kind="Deployment"))
    if not deployments or any(each.ready for each in deployments):  # one pod leads and does all of it
        return ""
    lame = max(deployments, key=lambda each: each.desired or 0)  # one that an older installation left says less
    named = f"Deployment {lame.namespace}/{lame.name}"
    if lame.desired == 0:
        return f"The GPU operator is switched off ({named} is scaled to 0): nothing is rolled out or repaired."
    pods = Pod.objects.filter(cluster=cluster, namespace=lame.namespace, name__startswith=f"{lame.name}-", operand="")
    said = next((pod.waiting_reason for pod in pods.filter(is_ready=False) if pod.waiting_reason), "")
    return (
        f"The GPU operator does not run ({named}, {lame.ready} of {lame.desired} pods ready): nothing is rolled out or "
        f"repaired.{f' Its pod says {said}.' if said else ''}"
    )
