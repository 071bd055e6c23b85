"""Hazard Z10: the right cluster, one Quarterdeck, and a database that is not an old copy."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db.models import QuerySet

from kube import client
from operations import writer_lease
from operations.models import WriterLease
from operations.writer_lease import LEASE_FOR, LEASE_NAME, Forfeit, take_writer_lease
from people.models import AuditEntry
from rollouts.models import Plan
from simulator.kinds import LEASE, NAMESPACE
from tests.make import an_operation
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.sqlite


def lease(ground: Ground) -> dict:
    return ground.store.get(LEASE, LEASE_NAME, "quarterdeck")


def take(ground: Ground) -> None:
    take_writer_lease(ground.connection, ground.cluster, now=ground.clock())


def rewrite(ground: Ground, **spec) -> None:
    ground.store.patch(LEASE, LEASE_NAME, {"spec": spec}, "quarterdeck", how="merge")


def test_the_first_claim_makes_the_lease(ground: Ground):
    take(ground)

    mine = WriterLease.objects.get(cluster=ground.cluster)
    assert lease(ground)["spec"]["holderIdentity"] == mine.instance
    assert lease(ground)["spec"]["leaseTransitions"] == mine.epoch == 1


def test_each_claim_counts_in_the_row_and_in_the_lease(ground: Ground):
    take(ground)
    since = lease(ground)["spec"]["acquireTime"]
    ground.clock.move(seconds=5)

    take(ground)

    assert lease(ground)["spec"]["leaseTransitions"] == WriterLease.objects.get().epoch == 2
    assert lease(ground)["spec"]["acquireTime"] == since
    assert lease(ground)["spec"]["renewTime"] > since


@pytest.mark.parametrize("mode", ["observe-only", "follow"])
def test_a_cluster_that_is_not_ours_to_operate_is_never_written(ground: Ground, mode: str):
    """Z34."""
    ground.cluster.mode = mode

    with pytest.raises(Forfeit, match=mode):
        take(ground)


def test_another_cluster_behind_the_same_address_is_never_written(ground: Ground):
    ground.cluster.uid = "uid-of-another"

    with pytest.raises(Forfeit, match="Another cluster now answers"):
        take(ground)


def test_another_quarterdeck_that_is_alive_is_left_alone(ground: Ground):
    take(ground)
    rewrite(ground, holderIdentity="somebody-else")

    with pytest.raises(Forfeit, match="somebody-else"):
        take(ground)


def test_another_quarterdeck_that_is_gone_is_followed(ground: Ground):
    take(ground)
    rewrite(ground, holderIdentity="somebody-else")
    ground.clock.move(seconds=LEASE_FOR.total_seconds())

    take(ground)

    assert lease(ground)["spec"]["holderIdentity"] == WriterLease.objects.get().instance


def test_a_lease_ahead_of_the_database_means_an_old_copy(ground: Ground):
    take(ground)
    rewrite(ground, leaseTransitions=99)

    with pytest.raises(Forfeit, match="old copy"):
        take(ground)


def test_two_workers_at_once_are_no_old_copy(ground: Ground, monkeypatch):
    """Two plans in one cluster: the other one's renewal may land between any two of our steps."""
    take(ground)
    get_lease = client.get_lease

    def after_the_other(*args):
        monkeypatch.setattr(writer_lease.client, "get_lease", get_lease)
        take(ground)
        return get_lease(*args)

    monkeypatch.setattr(writer_lease.client, "get_lease", after_the_other)

    take(ground)

    assert lease(ground)["spec"]["leaseTransitions"] == WriterLease.objects.get().epoch == 3


def test_a_cluster_without_our_namespace_says_what_to_apply(ground: Ground):
    ground.store.delete(NAMESPACE, "quarterdeck")

    with pytest.raises(Forfeit, match=r"deploy/rbac/quarterdeck\.yaml"):
        take(ground)


def test_a_restored_database_pauses_every_plan_of_the_cluster(ground: Ground):
    """Z10."""
    ground.armed()
    rewrite(ground, leaseTransitions=10_000)

    ground.round()

    pause = ground.plan.commands.in_force().get()
    assert "old copy" in pause.reason
    assert pause.actor == "engine"
    assert ground.releases() == []
    assert CANARY in ground.held()

    ground.round()
    assert ground.plan.commands.filter(verb="pause").count() == 1


def another(plan: Plan, object_uid: str, *, state: str) -> Plan:
    """A row of the same cluster, that the engine comes to after this plan's."""
    row = Plan.objects.get(pk=plan.pk)
    row.pk, row.object_uid, row.state, row.created_at = None, object_uid, state, plan.created_at - timedelta(hours=1)
    row.save(force_insert=True)
    return row


def test_a_plan_that_is_told_something_as_the_lease_is_lost_keeps_no_other_from_its_pause(ground: Ground, monkeypatch):
    """Z10, Z32: what a person says is no failure of ours. A plan that is given up reads no pause, and gets none."""
    ground.armed()
    other, given_up = (another(ground.plan, state, state=state) for state in ("promoting", "aborting"))
    rewrite(ground, leaseTransitions=10_000)
    lock = QuerySet.select_for_update

    def as_somebody_resumes(rows: QuerySet, **given) -> QuerySet:
        if not given.get("skip_locked") and not ground.plan.commands.filter(verb="resume").exists():
            ground.plan.commands.create(verb="resume", actor="bea", at=ground.clock(), reason="I saw it.")
        return lock(rows, **given)

    monkeypatch.setattr(QuerySet, "select_for_update", as_somebody_resumes)

    ground.round()

    assert "old copy" in ground.plan.waiting_for
    assert [each.commands.in_force().exists() for each in (ground.plan, other, given_up)] == [False, True, False]

    ground.round()

    assert ground.plan.commands.in_force().exists()


def test_a_claim_is_renewed_before_it_runs_out(ground: Ground):
    take(ground)

    assert timedelta(seconds=lease(ground)["spec"]["leaseDurationSeconds"]) == LEASE_FOR


def written_first(ground: Ground, monkeypatch: pytest.MonkeyPatch, *, times: int, **spec) -> None:
    """Somebody writes the Lease after each of our next reads, so many times."""
    read = client.get_lease
    left = iter(range(times))

    def read_too_early(*given):
        seen = read(*given)
        if next(left, None) is not None:
            ground.clock.move(seconds=1)
            rewrite(ground, renewTime=f"{ground.clock():%Y-%m-%dT%H:%M:%S.%fZ}", **spec)
        return seen

    monkeypatch.setattr(client, "get_lease", read_too_early)


def test_another_plan_of_ours_that_writes_first_costs_no_round(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """Seen on a real one with two plans at once: a round ended on it, and the page said so of the cluster."""
    take(ground)
    written_first(ground, monkeypatch, times=2)

    take(ground)

    assert lease(ground)["spec"]["leaseTransitions"] == WriterLease.objects.get().epoch


def test_another_quarterdeck_that_writes_first_is_seen(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """It loses: what is read after the conflict names who was first."""
    take(ground)
    written_first(ground, monkeypatch, times=1, holderIdentity="somebody-else")

    with pytest.raises(Forfeit, match="somebody-else"):
        take(ground)


def test_a_lease_that_is_written_each_time_ends_the_round(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    take(ground)
    written_first(ground, monkeypatch, times=50)

    with pytest.raises(client.Conflict):
        take(ground)


def test_a_restore_is_accepted_before_any_round_and_every_plan_is_paused(ground: Ground):
    ground.armed()
    operation = an_operation(ground.cluster)

    call_command("accept_restore", reason="incident 4711", stdout=(out := StringIO()))

    pause = ground.plan.commands.in_force().get()
    assert (pause.actor, pause.reason) == ("engine", "The database was restored: incident 4711")
    assert "1 plan paused. 1 operation paused." in out.getvalue()
    operation.refresh_from_db()
    assert (operation.state, "incident 4711" in operation.state_reason) == ("paused", True)
    decision = AuditEntry.objects.get(subject=f"cluster:{ground.cluster.pk}", verb="cluster.accept-restore")
    assert (decision.actor, decision.reason) == ("shell on the server", "incident 4711")
    ground.round()
    assert ground.releases() == []
