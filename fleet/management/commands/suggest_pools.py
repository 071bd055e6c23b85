import shlex
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.text import slugify

from fleet import kube
from fleet.labels import GPU_PRODUCT
from fleet.models import Cluster, Node, Pool
from fleet.observe import pools
from fleet.resources import product_of


class Command(BaseCommand):
    help = "Suggest a pool for each GPU product that is really there; with --create, make those that are missing."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster")
        parser.add_argument("--create", action="store_true")

    def handle(self, *args: Any, **given: Any) -> None:
        cluster = Cluster.objects.filter(name=given["cluster"]).first()
        if cluster is None:
            raise CommandError(f"There is no cluster {given['cluster']}. Add it with add_cluster.")
        labels = self._labels(cluster)
        if not labels:
            self.stdout.write(f"No node of {cluster.name} names a GPU product ({GPU_PRODUCT}).")
        for label, nodes in sorted(labels.items()):
            self._suggest(cluster, label, nodes, create=given["create"])
        if given["create"]:
            pools.sort_cluster(cluster.pk)

    def _labels(self, cluster: Cluster) -> dict[str, int]:
        """How many nodes carry each product label. From our rows; from the cluster while there are none."""
        rows = [
            labels.get(GPU_PRODUCT, "")
            for labels in Node.objects.filter(cluster=cluster).values_list("labels", flat=True)
        ]
        if not rows:
            rows = [node.labels.get(GPU_PRODUCT, "") for node in self._ask(cluster)]
        return {label: rows.count(label) for label in set(rows) if label}

    def _ask(self, cluster: Cluster) -> list[kube.NodeSeen]:
        try:
            return kube.list_nodes(kube.connect(cluster.kubeconfig, cluster.context))
        except kube.ClusterError as error:
            raise CommandError(str(error)) from error

    def _suggest(self, cluster: Cluster, label: str, nodes: int, *, create: bool) -> None:
        selector = f"{GPU_PRODUCT}={label}"
        name = slugify(product_of(label).removeprefix("NVIDIA-"))[:63]
        if known := Pool.objects.filter(cluster=cluster, selector=selector).first():
            self.stdout.write(f"{nodes} nodes, {label}: pool {known.name} has them.")
        elif create:
            pool, is_new = Pool.objects.get_or_create(cluster=cluster, name=name, defaults={"selector": selector})
            self.stdout.write(f"{nodes} nodes, {label}: pool {pool.name} {'is added' if is_new else 'is there'}.")
        else:
            said = shlex.join(["add_pool", cluster.name, name, "--selector", selector])
            self.stdout.write(f"{nodes} nodes, {label}: bin/manage {said}")
