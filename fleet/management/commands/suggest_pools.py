from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from fleet.freshness.kinds import NODES
from fleet.management.commands.import_pools import cluster_of
from fleet.models import Bookmark, Cluster, Pool
from fleet.pools.changes import create_pool
from fleet.pools.suggestions import Suggestion, suggest, unnamed
from fleet.segments.selector_offers import pool_name
from gpu.labels import GPU_PRODUCT
from gpu.resources import product_of
from kube import client
from people.roster.accounts import CONSOLE
from wording.numbers import count, either

MOST_UNAVAILABLE = 100_000


class Command(BaseCommand):
    help = "Suggest pools for the present GPU nodes. With --create, create the missing pools."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster")
        parser.add_argument("--create", action="store_true")
        parser.add_argument(
            "--max-unavailable", type=int, default=1, help="max_unavailable of each new pool; default: 1"
        )
        parser.add_argument("--by-product", action="store_true", help="One pool for each product, across zones.")

    def handle(self, *args: Any, **given: Any) -> None:
        cluster = cluster_of(given["cluster"])
        if not 1 <= given["max_unavailable"] <= MOST_UNAVAILABLE:
            raise CommandError(f"--max-unavailable is a number from 1 to {MOST_UNAVAILABLE:,}.")
        is_listed = Bookmark.objects.filter(cluster=cluster, kind=NODES, listed_at__isnull=False).exists()
        found = suggest(cluster) if is_listed and not given["by_product"] else self._ask(cluster)
        for each in found:
            self._suggest(cluster, each, create=given["create"], most=given["max_unavailable"])
        if number := unnamed(cluster):
            does = either(number, "GPU node does not name its", "GPU nodes do not name their")
            self.stdout.write(f"{number} {does} product ({GPU_PRODUCT}), so no pool can select by product.")
        elif not found:
            self.stdout.write(f"No node of {cluster.name} names a GPU product ({GPU_PRODUCT}).")

    def _ask(self, cluster: Cluster) -> list[Suggestion]:
        """Queries the cluster itself, by product only. Known nodes may be in pools."""
        try:
            nodes = client.list_nodes(client.connect(cluster.kubeconfig, cluster.context))
        except client.ClusterError as error:
            raise CommandError(error.in_full) from error
        pools: dict[str, set[Pool]] = defaultdict(set)
        for pool in Pool.objects.filter(cluster=cluster).prefetch_related("nodes"):
            for node in pool.nodes.all():
                pools[node.name].add(pool)
        labels = {node.name: node.labels[GPU_PRODUCT] for node in nodes if node.labels.get(GPU_PRODUCT)}
        return [
            _suggestion_of_labels(product, labels, pools) for product in sorted(set(map(product_of, labels.values())))
        ]

    def _suggest(self, cluster: Cluster, each: Suggestion, *, create: bool, most: int) -> None:
        if known := Pool.objects.filter(cluster=cluster, selector=each.selector).first():
            self.stdout.write(f"{each.reason} Pool {known.name} already has these nodes.")
        elif not each.is_needed:
            names = ", ".join(pool.name for pool in each.pools)
            self.stdout.write(f"{each.reason} All these nodes are in {names}.")
        elif create and Pool.objects.filter(cluster=cluster, name=each.name).exists():
            self.stdout.write(f"{each.reason} Pool {each.name} exists with another selector and stays unchanged.")
        elif create:
            fields = {"name": each.name, "selector": each.selector, "max_unavailable": most}
            pool = create_pool(cluster=cluster, actor=CONSOLE, now=timezone.now(), **fields)
            self.stdout.write(f"{each.reason} Pool {pool.name} is added.")
        else:
            self.stdout.write(f"{each.reason} --create adds pool {each.name} with selector {each.selector}.")


def _suggestion_of_labels(product: str, labels: Mapping[str, str], pools: Mapping[str, set[Pool]]) -> Suggestion:
    mine = {name: label for name, label in labels.items() if product_of(label) == product}
    words, unpooled = sorted(set(mine.values())), [name for name in mine if not pools.get(name)]
    have = {pool for name in mine for pool in pools.get(name, ())}
    selector = f"{GPU_PRODUCT}={words[0]}" if len(words) == 1 else f"{GPU_PRODUCT} in ({','.join(words)})"
    reason = f"{count(len(mine), 'node')} with {product}."
    ordered = sorted(have, key=lambda pool: pool.name)
    return Suggestion(
        name=pool_name([product]),
        selector=selector,
        nodes=len(mine),
        gpus=None,
        uncounted=len(mine),
        unpooled=len(unpooled),
        pools=ordered,
        reason=reason,
    )
