from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from edges.arguments import reason
from fleet.models import Cluster
from gpu.labels import MANAGED_BY, OURS, PULLS_FOR
from kube import client
from people.models import AuditEntry
from rollouts.engine.takeover import Mark, jobs, marks, remove, remove_jobs
from rollouts.lifecycle import PlanState, StageState
from rollouts.models import Hold, ImagePull, OptOut, Plan, StageKind
from rollouts.steering.pulling import call_off
from wording.numbers import are, count, either

MOST_ROUNDS = 5  # what carries a mark then is marked anew by somebody
BY_HAND = f"kubectl delete jobs -A -l {MANAGED_BY}={OURS},{PULLS_FOR}"


class Command(BaseCommand):
    help = (
        "Remove every hold, opt-out and Job of ours from a cluster, as docs/takeover.md describes. "
        "Nodes whose driver object asks for a new version will then change."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", nargs="?", help="its name; without one, every cluster")
        parser.add_argument("--dry-run", action="store_true", help="only say what carries a mark of ours")
        parser.add_argument(
            "--give-up-plans",
            type=reason,
            metavar="WHY",
            default="",
            help="end the plans under way first, or they would hold again",
        )

    def handle(self, *args, **options) -> None:
        clusters = Cluster.objects.filter(name=options["cluster"]) if options["cluster"] else Cluster.objects.all()
        if not clusters:
            raise CommandError(f"There is no cluster {options['cluster'] or 'at all'}.")
        troubles: list[str] = []
        for cluster in clusters:
            troubles += self._release(cluster, dry_run=options["dry_run"], why=options["give_up_plans"])
        if troubles:
            raise CommandError("\n".join(troubles))

    def _release(self, cluster: Cluster, *, dry_run: bool, why: str) -> list[str]:
        """What is left there, and why. The nodes go first: a Job of ours touches nothing, and ends by itself."""
        try:
            connection = client.connect(cluster.kubeconfig, cluster.context)
            if (uid := client.kube_system_uid(connection)) != cluster.uid:
                self._leave_foreign(cluster, uid, dry_run=dry_run, why=why)
                return []
            found = marks(connection)
            if dry_run:
                self._show(cluster, found, connection)
                return []
            self._end_plans(cluster, why)
            self._stop_pulls(cluster, why)
            return [*self._remove(cluster, connection), *self._remove_jobs(cluster, connection)]
        except client.ClusterError as error:
            return [f"{cluster.name}: {error.in_full}"]
        except CommandError as refusal:  # plans under way here are no reason to leave another cluster held
            return [str(refusal)]

    def _leave_foreign(self, cluster: Cluster, uid: str, *, dry_run: bool, why: str) -> None:
        """Marks there are not ours to take off: they are another cluster's (hazard Z10)."""
        if not dry_run and why:
            self._end_plans(cluster, why)
        self.stdout.write(
            f"{cluster.name}: another cluster answers there, its kube-system has the UID {uid}. "
            "Nothing of it was changed."
        )

    def _show(self, cluster: Cluster, found: list[Mark], connection: client.Connection) -> None:
        ours, trouble = _jobs(connection)
        if trouble:
            self.stdout.write(f"{cluster.name}: {trouble}")
        for job in ours:
            where = f"Job {job.metadata.namespace}/{job.name}"
            self.stdout.write(f"{cluster.name} {where}: pulls an image for {job.labels[PULLS_FOR]}; would be deleted")
        for mark in found:
            if mark.is_held:
                held = "held" if mark.has_label else "annotated only"
                self.stdout.write(f"{cluster.name} {mark.node}: {held} by {mark.plan} since {mark.since or 'unknown'}")
            if mark.opted_out:
                off = " and ".join(mark.opted_out)
                self.stdout.write(f"{cluster.name} {mark.node}: {off} by {mark.plan}; would be put back as it was")
        self.stdout.write(f"{cluster.name}: {len(found)} nodes carry a mark of ours. Nothing was changed.")
        for plan in Plan.objects.filter(cluster=cluster).under_way():
            armed = f", and the cluster asks for {plan.to_version}: released nodes will change" if plan.is_armed else ""
            self.stdout.write(f"{cluster.name}: {plan} is {plan.state}{armed}.")

    def _end_plans(self, cluster: Cluster, why: str) -> None:
        under_way = list(Plan.objects.filter(cluster=cluster).under_way())
        if under_way and not why:
            names = ", ".join(str(plan) for plan in under_way)
            raise CommandError(
                f"{cluster.name}: {names} under way would hold the nodes again. Roll back or abort there first, "
                "or give the reason with --give-up-plans."
            )
        for plan in under_way:
            with transaction.atomic():
                plan.refresh_from_db(from_queryset=Plan.objects.select_for_update())
                if plan.is_under_way:
                    _end(plan, why)

    def _stop_pulls(self, cluster: Cluster, why: str) -> None:
        """Those of drafts too: else a worker would make the next of their Jobs."""
        because = why or "Quarterdeck leaves this cluster."
        for pull in ImagePull.objects.in_force().filter(plan__cluster=cluster).select_related("plan"):
            call_off(pull, by="release_all", because=because, now=timezone.now())

    def _remove_jobs(self, cluster: Cluster, connection: client.Connection) -> list[str]:
        ours, unlisted = _jobs(connection)
        left = 0
        for job, trouble in remove_jobs(connection, ours):
            where = f"Job {job.metadata.namespace}/{job.name}"
            self.stdout.write(f"{cluster.name} {where}: {trouble or 'deleted'}")
            left += bool(trouble)
        if unlisted:
            return [f"{cluster.name}: {unlisted} Mend that and run it again, or: {BY_HAND}"]
        if left:
            jobs_left = f"{count(left, 'Job')} of ours {are(left)} still there"
            return [f"{cluster.name}: {jobs_left}. Run it again, or: {BY_HAND}"]
        return []

    def _remove(self, cluster: Cluster, connection: client.Connection) -> list[str]:
        """List and take off until nothing is left: a label that was on its way when its plan ended may still land."""
        every: set[str] = set()
        rounds = failed = 0
        while left := marks(connection):
            every |= {mark.uid for mark in left}
            if failed or rounds == MOST_ROUNDS:
                break
            failed = self._take_off(cluster, connection, left)
            rounds += 1
        self.stdout.write(f"{cluster.name}: {len(every) - len(left)} of {count(len(every), 'node')} released.")
        if left:
            still = f"{count(len(left), 'node')} {either(len(left), 'still carries', 'still carry')} a mark"
            return [f"{cluster.name}: {still} after {count(rounds, 'round')}. Run it again."]
        return []

    def _take_off(self, cluster: Cluster, connection: client.Connection, found: list[Mark]) -> int:
        """Of how many that failed."""
        failed = 0
        for mark, trouble in remove(connection, found):
            failed += bool(trouble)
            if not trouble:
                Hold.objects.filter(plan__cluster=cluster, node_uid=mark.uid).update(is_wanted=False, placed_at=None)
                off = OptOut.objects.in_force().filter(plan__cluster=cluster, node_uid=mark.uid)
                off.update(is_wanted=False, ended_at=timezone.now())
            self.stdout.write(f"{cluster.name} {mark.node}: {trouble or 'released'}")
        return failed


def _end(plan: Plan, why: str) -> None:
    """Whoever is in a round of it loses its turn, and holds nothing any more."""
    now = timezone.now()
    for to in (PlanState.ABORTING, PlanState.ABORTED):
        if plan.state != to:
            plan.move(to, now=now, actor="release_all", because=why)
    never_opened = Q(kind=StageKind.ROLLBACK, state=StageState.WAITING)
    for stage in plan.stages.exclude(never_opened | Q(state__in=(StageState.PASSED, StageState.ABANDONED))):
        stage.move(StageState.ABANDONED, now=now, actor="release_all", because=why)
    Plan.objects.filter(pk=plan.pk).update(epoch=F("epoch") + 1, lease_until=now)
    AuditEntry.record(plan.mark, verb="release-all", actor="release_all", because=why, now=now)


def _jobs(connection: client.Connection) -> tuple[list[client.JobSeen], str]:
    """Those of ours, and why they could not be listed. Blank: they were."""
    try:
        return jobs(connection), ""
    except client.ClusterError as error:
        return [], f"Jobs of ours could not be listed: {str(error).rstrip('.')}."
