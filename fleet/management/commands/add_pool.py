from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from edges.arguments import number, price, words
from fleet.management.commands.import_pools import cluster_of
from fleet.management.commands.suggest_pools import MOST_UNAVAILABLE
from fleet.models import Cluster, Pool
from fleet.models.pool import PoolApproval, WorkloadClass
from fleet.pools.approval_rules import ProductionAsks
from fleet.pools.changes import PoolGone, PoolTaken, change_pool, create_pool
from people.roster.accounts import CONSOLE

COLUMNS = ("selector", "environment", "workload_class", "approval", "max_unavailable", "price_per_gpu_hour")


class Command(BaseCommand):
    help = "Name the nodes of a cluster that a label selector picks, or change what is agreed about them."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster")
        parser.add_argument("name", help="letters, digits, - and _")
        parser.add_argument(
            "--selector", type=words(1000), required=True, help="as kubectl's: nvidia.com/gpu.product=…,zone in (a,b)"
        )
        parser.add_argument("--environment", type=words(63), help="production, staging, …")
        parser.add_argument("--workload-class", choices=WorkloadClass.values)
        parser.add_argument("--approval", choices=PoolApproval.values, help="none: plans change its nodes unasked")
        parser.add_argument(
            "--max-unavailable", type=number(1, MOST_UNAVAILABLE), help="nodes, those already broken included"
        )
        parser.add_argument("--price-per-gpu-hour", type=price)

    def handle(self, *args: Any, **given: Any) -> None:
        cluster = cluster_of(given["cluster"])
        fields = {column: given[column] for column in COLUMNS if given[column] is not None}
        known = Pool.objects.filter(cluster=cluster, name=given["name"]).first()
        self._check(cluster, given["name"], fields)
        try:
            if known is None:
                pool = create_pool(cluster=cluster, actor=CONSOLE, now=timezone.now(), name=given["name"], **fields)
            else:
                pool = change_pool(known, actor=CONSOLE, now=timezone.now(), **fields)
        except (PoolGone, PoolTaken, ProductionAsks) as refusal:
            raise CommandError(str(refusal)) from refusal
        done = "is up to date" if known else "is added"
        self.stdout.write(
            f"Pool {pool.name} of {cluster.name} {done}: {pool.nodes.count()} nodes match {pool.selector}."
        )

    def _check(self, cluster: Cluster, name: str, fields: dict[str, Any]) -> None:
        try:
            Pool(cluster=cluster, name=name, **fields).clean_fields()
        except ValidationError as refusal:
            said = (f"{column}: {' '.join(why)}" for column, why in refusal.message_dict.items())
            raise CommandError(" ".join(said)) from refusal
