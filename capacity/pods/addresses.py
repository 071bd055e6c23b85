"""Addresses of the pages of namespaces and workloads, whatever their names are."""

from urllib.parse import quote

from django.urls import reverse


def namespace_page(cluster_id: int, namespace: str) -> str:
    return f"{reverse('cluster', args=[cluster_id])}/namespaces/{quote(namespace, safe='')}"


def workload_page(cluster_id: int, namespace: str, owner: str) -> str:
    """Returns the address of the page of a workload. `owner` is `Job/train`."""
    return f"{reverse('cluster', args=[cluster_id])}/workloads/{quote(f'{namespace}/{owner}', safe='/')}"
