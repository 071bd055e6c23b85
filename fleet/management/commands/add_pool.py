from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from fleet.models import Cluster, Pool
from fleet.models.pool import WorkloadClass
from fleet.observe import pools

COLUMNS = ("selector", "environment", "workload_class", "max_unavailable", "price_per_gpu_hour")


class Command(BaseCommand):
    help = "Name the nodes of a cluster that a label selector picks, or change what is agreed about them."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster")
        parser.add_argument("name", help="letters, digits, - and _")
        parser.add_argument("--selector", required=True, help="as kubectl's: nvidia.com/gpu.product=…,zone in (a,b)")
        parser.add_argument("--environment", help="production, staging, …")
        parser.add_argument("--workload-class", choices=WorkloadClass.values)
        parser.add_argument("--max-unavailable", type=int, help="nodes, those already broken included")
        parser.add_argument("--price-per-gpu-hour", type=Decimal)

    def handle(self, *args: Any, **given: Any) -> None:
        cluster = Cluster.objects.filter(name=given["cluster"]).first()
        if cluster is None:
            raise CommandError(f"There is no cluster {given['cluster']}. Add it with add_cluster.")
        pool = Pool.objects.filter(cluster=cluster, name=given["name"]).first() or Pool(
            cluster=cluster, name=given["name"]
        )
        is_new = pool.pk is None
        for column in COLUMNS:
            if given[column] is not None:
                setattr(pool, column, given[column])
        self._save(pool)
        pools.sort_cluster(cluster.pk)
        done = "is added" if is_new else "is up to date"
        self.stdout.write(
            f"Pool {pool.name} of {cluster.name} {done}: {pool.nodes.count()} nodes match {pool.selector}."
        )

    def _save(self, pool: Pool) -> None:
        try:
            pool.full_clean(exclude=[column for column in COLUMNS if getattr(pool, column) is None])
        except ValidationError as refusal:
            said = (f"{column}: {' '.join(why)}" for column, why in refusal.message_dict.items())
            raise CommandError(" ".join(said)) from refusal
        pool.save()
