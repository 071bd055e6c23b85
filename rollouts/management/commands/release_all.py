import time
from contextlib import suppress
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from edges.arguments import reason
from edges.transition_errors import IllegalMove, LostRace
from fleet.models import Cluster
from gpu.labels import PROOF, PROVES_FOR, UPGRADE_SKIP, UPGRADE_STATE, count_in
from kube import client
from operations.commands import cancel
from operations.kinds import KINDS
from operations.models import Freeze, Operation
from operations.models.operation import MARK as OPERATION_MARK
from operations.steps.test_job import left_behind
from operations.stop_switch import STOP_SWITCH, stopped_by_switch
from operations.writer_lease import LEASE_NAME
from people.models import AuditEntry
from rollouts.commands.fleet_freezes import stop_in_force
from rollouts.commands.image_pulls import KIND
from rollouts.components.base import version_in
from rollouts.engine import cluster_cleanup
from rollouts.engine.cluster_cleanup import Mark, marks, remove
from rollouts.engine.leftovers import what_is_left
from rollouts.engine.templates import digests_of
from rollouts.lifecycle import PLAN_UNDER_WAY, PlanState, StageState
from rollouts.models import Cordon, Exclusion, Hold, Plan, StageKind, TestJob
from rollouts.models.gate_answer import LONGEST_REASON
from rollouts.models.plan import MARK as PLAN_MARK
from rollouts.models.transitions import record_event
from rollouts.queries.restraints import restraint_by
from rollouts.queries.warm_ups import slowest_warm_up
from wording.instants import to_the_second
from wording.lists import names
from wording.numbers import count, either
from wording.sentences import with_period

MOST_ROUNDS = 5  # after this many rounds another client must be writing the marks
MOST_LOOKS = 30  # a second apart: so long may pods take to end whose Job is deleted
BY_HAND = f"kubectl delete jobs -A -l {cluster_cleanup.MANAGED},{PROVES_FOR}"


class Command(BaseCommand):
    help = (
        "Remove every hold, cordon, exclusion, Job and Lease of ours from a cluster, as docs/takeover.md describes. "
        "Nodes whose driver object asks for a new version will then change."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", nargs="?", help="name of the cluster; default: every cluster")
        parser.add_argument("--dry-run", action="store_true", help="only print the changes")
        parser.add_argument(
            "--give-up-plans",
            type=reason,
            metavar="WHY",
            default="",
            help="end the plans in progress first; otherwise they would hold the nodes again",
        )
        parser.add_argument(
            "--to-another-version",
            action="store_true",
            help="release nodes although somebody else has changed their driver object",
        )

    def handle(self, *args, **options) -> None:
        clusters = Cluster.objects.filter(name=options["cluster"]) if options["cluster"] else Cluster.objects.all()
        if not clusters:
            raise CommandError(f"Cluster {options['cluster'] or ''} does not exist.")
        self.to_another_version = options["to_another_version"]
        troubles: list[str] = []
        for cluster in clusters:
            found = self._release(cluster, dry_run=options["dry_run"], why=options["give_up_plans"])
            troubles += [f"{cluster.name}: {trouble}" for trouble in found]
        if troubles:
            raise CommandError("\n".join(troubles))

    def _release(self, cluster: Cluster, *, dry_run: bool, why: str) -> list[str]:
        """Releases a cluster, and returns what failed. Nodes come first, since a Job of ours ends by itself."""
        try:
            connection = client.connect(cluster.kubeconfig, cluster.context)
            if (uid := client.kube_system_uid(connection)) != cluster.uid:
                return self._leave_foreign(cluster, uid, dry_run=dry_run, why=why)
            if dry_run:
                return self._show(cluster, connection, why)
            marks(connection)  # no plan is given up where nothing could be taken off
            if barred := _foreign_lease_reason(cluster, connection) or self._changed(cluster, connection):
                return [barred]
            plans = self._end_plans(cluster, why)
            self._stop_pulls(cluster, why)
            rounds, stopped = self._remove(cluster, connection)
            self._remove_jobs(cluster, connection)
            left = stopped or _remaining_marks(connection, rounds) or self._remove_lease(cluster, connection)
            # The Lease was the last write: only a later read proves that no mark is left.
            left = left or _remaining_marks(connection, rounds)
            _say_how_they_ended(plans, connection, why)
        except client.ClusterError as error:
            return [error.in_full]
        except CommandError as refusal:  # plans in progress here are no reason to leave another cluster held
            return [str(refusal)]
        if not left:
            self.stdout.write(f"{cluster.name}: no objects of Quarterdeck are left.")
        return left

    def _leave_foreign(self, cluster: Cluster, uid: str, *, dry_run: bool, why: str) -> list[str]:
        """Leaves the marks of another cluster alone (Z10)."""
        if not dry_run and why:
            self._end_plans(cluster, why)
        return [f"another cluster answers there, its kube-system has the UID {uid}. Nothing of it was changed."]

    def _show(self, cluster: Cluster, connection: client.Connection, why: str) -> list[str]:
        """Prints what the command would do without --dry-run, and returns what prevents it."""
        bars = (
            _foreign_lease_reason(cluster, connection),
            _stopped(cluster, connection),
            self._changed(cluster, connection),
        )
        troubles = [one for one in bars if one]
        for plan in Plan.objects.filter(cluster=cluster).under_way():
            change = f", and the cluster requests {plan.to_version}: released nodes will change"
            armed = change if _is_armed(plan, connection) else ""
            then = "It would be ended" if why else "It prevents this without --give-up-plans"
            self.stdout.write(f"{cluster.name}: {plan} is {plan.state}{armed}. {then}.")
        for pull in _pulls(cluster):
            self.stdout.write(f"{cluster.name}: {pull.mark} ({pull.summary}) would be cancelled.")
        ours, unlisted = _jobs(connection)
        for job in ours:
            where = f"Job {job.metadata.namespace}/{job.name}"
            self.stdout.write(f"{cluster.name} {where}: {cluster_cleanup.is_for(job.labels)}; would be deleted")
        found, unread = marks(connection)
        for mark in found:
            for line in _planned_changes(mark):
                self.stdout.write(f"{cluster.name} {mark.node}: {line}")
        troubles += [one for one in (unlisted, _unread_sentence(unread)) if one]
        lease = cluster_cleanup.lease(connection, cluster)
        if lease and not cluster_cleanup.is_of_another(lease):
            self.stdout.write(f"{cluster.name} Lease {cluster.own_namespace}/{LEASE_NAME}: would be deleted")
        carry = either(len(found), "carries", "carry")
        self.stdout.write(
            f"{cluster.name}: {count(len(found), 'node')} {carry} a mark of Quarterdeck. Nothing was changed."
        )
        return troubles

    def _changed(self, cluster: Cluster, connection: client.Connection) -> str:
        """Returns why nodes that would change stay held (Z38); empty if none would, or a person has decided and no
        freeze binds them."""
        plans = _holding(cluster)
        of_others = {plan: change for plan in plans if (change := _foreign_change(plan, connection))}
        if of_others and not self.to_another_version:
            plan, change = next(iter(of_others.items()))
            then = f"Every node that {plan.mark} holds would change to that version, at the operator's speed"
            back = f"Restore {plan.from_version}, or run this again with --to-another-version."
            return f"{change} {then}. Nothing was changed. {back}"
        if not (of_others or any(_is_armed(plan, connection) for plan in plans)):
            return ""
        now = timezone.now()
        frozen = Freeze.objects.in_force(now=now).binding(cluster.pk).filter(is_stop=False)
        reason = next((restraint_by(one, now=now).sentence for one in frozen.prefetch_related("cluster", "pool")), "")
        return f"{reason} Nodes would change, so nothing was changed. Lift it and run this again." if reason else ""

    def _end_plans(self, cluster: Cluster, why: str) -> list[Plan]:
        under_way = list(Plan.objects.filter(cluster=cluster).under_way())
        if under_way and not why:
            under = ", ".join(str(plan) for plan in under_way)
            raise CommandError(
                f"{under} in progress would hold the nodes again. Roll back or abort first, or give a reason "
                "with --give-up-plans."
            )
        given_up = []
        for plan in under_way:
            warm_up_s = slowest_warm_up(plan, by=timezone.now())  # before the lock: it reads many pods
            with transaction.atomic():
                plan.refresh_from_db(from_queryset=Plan.objects.select_for_update(no_key=True))
                if plan.is_under_way:
                    _end_plan(plan, why, warm_up_s=warm_up_s)
                    given_up.append(plan)
        return given_up

    def _stop_pulls(self, cluster: Cluster, why: str) -> None:
        """Cancels image pulls, also of drafts, so that no worker creates more Jobs."""
        reason = why or "Quarterdeck leaves this cluster."
        for pull in _pulls(cluster):
            with suppress(IllegalMove, LostRace):  # it has just ended
                cancel(pull, actor="release_all", reason=reason, now=timezone.now())

    def _remove(self, cluster: Cluster, connection: client.Connection) -> tuple[int, list[str]]:
        """Removes marks until none is left, since a late label may still arrive; returns the number of rounds and the
        failures."""
        every: set[str] = set()
        rounds = 0
        troubles: list[str] = []
        while left := marks(connection)[0]:
            every |= {mark.uid for mark in left}
            if troubles or rounds == MOST_ROUNDS:
                break
            troubles = self._take_off(cluster, connection, left)
            rounds += 1
        self.stdout.write(f"{cluster.name}: {len(every) - len(left)} of {count(len(every), 'node')} released.")
        return rounds, [one for one in troubles if one]

    def _take_off(self, cluster: Cluster, connection: client.Connection, found: list[Mark]) -> list[str]:
        """Returns why marks remain; an empty text means that the node's own line has the reason."""
        if stopped := _stopped(cluster, connection):
            return [stopped]
        troubles = []
        for mark, trouble in remove(connection, found):
            if trouble:
                troubles.append("")
            else:
                Hold.objects.filter(plan__cluster=cluster, node_uid=mark.uid).update(is_wanted=False, placed_at=None)
                off = Exclusion.objects.in_force().filter(plan__cluster=cluster, node_uid=mark.uid)
                off.update(is_wanted=False, ended_at=timezone.now())
                Cordon.objects.filter(plan__cluster=cluster, node_uid=mark.uid).end(now=timezone.now())
            self.stdout.write(f"{cluster.name} {mark.node}: {trouble or 'released'}")
            if stopped := _stopped(cluster, connection):
                return [*troubles, stopped]
        return troubles

    def _remove_jobs(self, cluster: Cluster, connection: client.Connection) -> None:
        for job, trouble in cluster_cleanup.remove_jobs(connection, _jobs(connection)[0]):
            where = f"Job {job.metadata.namespace}/{job.name}"
            self.stdout.write(f"{cluster.name} {where}: {trouble or 'deleted'}")
            if not trouble:
                _row_of(cluster, job).update(gone_at=timezone.now())

    def _remove_lease(self, cluster: Cluster, connection: client.Connection) -> list[str]:
        named = f"Lease {cluster.own_namespace}/{LEASE_NAME}"
        by_hand = f"Run it again, or: kubectl -n {cluster.own_namespace} delete lease {LEASE_NAME}"
        try:
            if (lease := cluster_cleanup.lease(connection, cluster)) is None:
                return []
            client.delete_lease(connection, lease)
        except client.Absent:
            return []
        except client.ClusterError as error:
            return [f"{named}: {str(error).rstrip('.')}. {by_hand}"]
        self.stdout.write(f"{cluster.name} {named}: deleted")
        return [f"{named} was created again. {by_hand}"] if cluster_cleanup.lease(connection, cluster) else []


def _end_plan(plan: Plan, why: str, *, warm_up_s: float | None) -> None:
    """Ends a plan. A running round loses its turn, and no hold remains in force."""
    now = timezone.now()
    for to in (PlanState.ABORTING, PlanState.ABORTED):
        if plan.state != to:
            plan.move(to, now=now, actor="release_all", reason=why)
    never_opened = Q(kind=StageKind.ROLLBACK, state=StageState.WAITING)
    for stage in plan.stages.exclude(never_opened | Q(state__in=(StageState.PASSED, StageState.ABANDONED))):
        stage.move(StageState.ABANDONED, now=now, actor="release_all", reason=why)
    Plan.objects.filter(pk=plan.pk).update(epoch=F("epoch") + 1, lease_until=now, waiting_for="", warm_up_s=warm_up_s)
    AuditEntry.record(plan.mark, verb="release-all", actor="release_all", reason=why, now=now)


def _say_how_they_ended(plans: list[Plan], connection: client.Connection, why: str) -> None:
    """Records each plan's end with what is left of it in the cluster (Z42)."""
    if not plans:
        return
    nodes, now = client.list_nodes(connection), timezone.now()
    for plan in plans:
        given, room = with_period(why), LONGEST_REASON - 1 - len(with_period(why))
        left = what_is_left(plan, nodes, connection, now=now, room=room)
        left = left or f"As of {to_the_second(now)}, no marks are left on its nodes."
        Plan.objects.filter(pk=plan.pk).update(reason=f"{given} {left}"[:LONGEST_REASON])
        record_event(plan=plan, what="note", was="", to="released", now=now, actor="release_all", reason=left)


def _holding(cluster: Cluster) -> list[Plan]:
    labelled = Hold.objects.filter(plan__cluster=cluster, placed_at__isnull=False, is_foreign=False).values("plan")
    plans = Plan.objects.filter(cluster=cluster)
    return list(plans.filter(Q(state__in=PLAN_UNDER_WAY) | Q(pk__in=labelled)).order_by("pk"))


def _foreign_change(plan: Plan, connection: client.Connection) -> str:
    named = f"{plan.object_kind} {plan.object_name}"
    try:
        _, spec = client.get_driver_object_whole(connection, plan.object_kind, plan.object_name)
    except client.Absent:
        return ""
    ours = {plan.from_version, plan.handed_to} | ({plan.to_version} if plan.write_intended_at else set())
    if (version := version_in(plan.its_component, spec)) not in ours - {""}:
        return f"{named} requests {version or 'no version'}, which is not a version of {plan.mark}."
    known, now = plan.templates.get("spec"), digests_of(plan, spec)
    return f"{named} was changed by somebody else since {plan.mark} began." if known and known != now else ""


def _row_of(cluster: Cluster, job: client.JobSeen) -> QuerySet[Any]:
    """Returns the row of a plan's test Job, or of a Job that an ended operation has left; empty for another Job.

    Without a word there, a worker would look for the Job, and take the Lease for that.
    """
    owner, number = job.labels.get(PROVES_FOR, ""), count_in(job.labels.get(PROOF)) or 0
    if owner.startswith(PLAN_MARK):
        return TestJob.objects.in_the_cluster().filter(plan__cluster=cluster, pk=number)
    return left_behind().filter(operation__cluster=cluster, pk=number if owner.startswith(OPERATION_MARK) else 0)


def _pulls(cluster: Cluster) -> QuerySet[Operation]:
    return Operation.objects.in_progress().filter(cluster=cluster, steps=list(KINDS[KIND].steps)).order_by("pk")


def _foreign_lease_reason(cluster: Cluster, connection: client.Connection) -> str:
    """Returns why marks there may not be ours to remove (Z10); empty if they are."""
    lease = cluster_cleanup.lease(connection, cluster)
    if lease is None or not cluster_cleanup.is_of_another(lease):
        return ""
    return (
        f"its Lease names another Quarterdeck ({lease.spec.holder_identity}), whose marks there may be. Nothing was "
        f"changed. If that one is gone: kubectl -n {cluster.own_namespace} delete lease {LEASE_NAME}, and run it again."
    )


def _is_armed(plan: Plan, connection: client.Connection) -> bool:
    """Returns whether the object has the new version; without a worker rows do not show a restored one."""
    try:
        _, spec = client.get_driver_object_whole(connection, plan.object_kind, plan.object_name)
    except client.Absent:
        return False
    return version_in(plan.its_component, spec) == plan.to_version


def _stopped(cluster: Cluster, connection: client.Connection) -> str:
    if reason := stopped_by_switch(cluster, connection):
        lift = f"kubectl -n {cluster.own_namespace} delete configmap {STOP_SWITCH}"
        return f"{reason} No node is released until it is gone. Run {lift}, then run this again."
    now = timezone.now()
    if stop := stop_in_force(now=now):
        return f"{restraint_by(stop, now=now).sentence} No node is released until the stop is lifted."
    return ""


def _planned_changes(mark: Mark) -> list[str]:
    """Returns the planned changes of a node."""
    if mark.kept_by:
        return [f"its marks would stay: {cluster_cleanup.kept_cordon_text(mark)}"]
    lines = []
    if mark.is_held:
        held = "held" if mark.has_label else "annotated only"
        labels = f"{UPGRADE_STATE}, {UPGRADE_SKIP}" if mark.is_queued else UPGRADE_SKIP
        then = f"{labels} and its annotations" if mark.has_label else "its annotations"
        lines.append(f"{held} by {mark.plan or 'a plan'} since {mark.since or 'unknown'}; {then} would be removed")
    if mark.is_cordoned:
        lines.append(f"cordoned by {mark.plan or 'a plan'} until its test Job has completed; would be uncordoned")
    if mark.unclear:
        lines.append(f"{cluster_cleanup.unclear_mark_text(mark)} It would be left as it is.")
    elif mark.has_exclusions:
        off = " and ".join(mark.exclusions) or "nothing"
        lines.append(f"{off} by {mark.plan or 'a plan'}; would be restored")
    return lines


def _remaining_marks(connection: client.Connection, rounds: int) -> list[str]:
    found, unread = marks(connection)
    ours, unlisted = _jobs(connection)
    pods = [] if unlisted else _pods(connection, wait=not ours)
    still = f"{count(len(found), 'node')} {either(len(found), 'still carries', 'still carry')} a mark"
    there = [
        f"{still} after {count(rounds, 'round')}. Run it again." if found else "",
        (
            f"{count(len(ours), 'Job')} of Quarterdeck still "
            f"{either(len(ours), 'exists', 'exist')}. Run this again, or: {BY_HAND}"
        )
        if ours
        else "",
        (
            f"{count(len(pods), 'pod')} of Quarterdeck's Jobs still "
            f"{either(len(pods), 'exists', 'exist')}. Run this again."
        )
        if pods
        else "",
        f"{unlisted} Correct that and run this again, or: {BY_HAND}" if unlisted else "",
        _unread_sentence(unread),
    ]
    return [one for one in there if one]


def _pods(connection: client.Connection, *, wait: bool) -> list[client.PodSeen]:
    found = cluster_cleanup.pods(connection)
    for _ in range(MOST_LOOKS if wait else 0):
        if not found:
            break
        time.sleep(1)
        found = cluster_cleanup.pods(connection)
    return found


def _unread_sentence(unread: list[str]) -> str:
    if not unread:
        return ""
    cannot = f"{count(len(unread), 'node')} ({names(unread)}) cannot be read"
    return f"{cannot}. It is unknown whether {either(len(unread), 'it carries', 'they carry')} a mark of Quarterdeck."


def _jobs(connection: client.Connection) -> tuple[list[client.JobSeen], str]:
    try:
        return cluster_cleanup.jobs(connection), ""
    except client.ClusterError as error:
        return [], f"Quarterdeck's Jobs could not be listed: {str(error).rstrip('.')}."
