from contextlib import closing
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from edges.arguments import reason
from fleet.models import Cluster, ClusterMode
from kube import client
from operations import commands as operations
from operations.lifecycle import OperationState
from operations.models import Operation
from operations.restraints import AFTER_RESTORE
from operations.writer_lease import Forfeit, take_over
from people.models import AuditEntry
from people.roster.accounts import CONSOLE
from rollouts.engine.record import pause
from rollouts.lifecycle import PlanState
from rollouts.models import Plan
from wording.numbers import count


class Command(BaseCommand):
    help = (
        "Continue with a database from a backup: pause every plan and operation in progress, open the breakers of "
        "automatic quarantine, and take the Lease of every operated cluster. "
        "A Quarterdeck with the newer database is refused from then on. Stop its workers first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--reason", type=reason, required=True, help="shown where it pauses; kept permanently")

    def handle(self, *args: Any, **given: Any) -> None:
        paused = self._pause_plans(given["reason"])
        stopped = self._pause_operations(given["reason"])
        self.stdout.write(f"{count(paused, 'plan')} paused. {count(stopped, 'operation')} paused.")
        reason = f"The database was restored: {given['reason']}"
        for end in AFTER_RESTORE:
            self.stdout.write(end(reason, timezone.now()))
        clusters = Cluster.objects.filter(mode=ClusterMode.OPERATE)
        troubles = [self._take(cluster, given["reason"]) for cluster in clusters]
        if failed := [trouble for trouble in troubles if trouble]:
            raise CommandError("\n".join(failed))

    def _pause_plans(self, why: str) -> int:
        """Pauses plans before any Lease is taken, and returns how many are paused."""
        plans = list(Plan.objects.under_way())
        for plan in plans:
            pause(plan, f"The database was restored: {why}", told=plan.commands.newest(), now=timezone.now())
            if plan.state == PlanState.ABORTING:
                self.stdout.write(f"{plan.mark} is being aborted: a pause does not hold it. Check its page first.")
        return len(plans)

    def _pause_operations(self, why: str) -> int:
        running = list(Operation.objects.filter(state=OperationState.RUNNING))
        for operation in running:
            operations.pause(operation, actor=CONSOLE, reason=f"The database was restored: {why}", now=timezone.now())
        return len(running)

    def _take(self, cluster: Cluster, why: str) -> str:
        """Takes the Lease of a cluster, and returns why it could not."""
        try:
            with closing(client.connect(cluster.kubeconfig, cluster.context)) as connection:
                take_over(connection, cluster, now=timezone.now())
        except (client.ClusterError, Forfeit) as error:
            return f"{cluster.name}: {error}"
        verb, at = "cluster.accept-restore", timezone.now()
        AuditEntry.record(f"cluster:{cluster.pk}", verb=verb, actor=CONSOLE, reason=why, now=at)
        self.stdout.write(f"{cluster.name}: this database writes from now on.")
        return ""
