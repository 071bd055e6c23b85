"""The ledger of disruption on rows: what takes places, what binds, and that of two plans one waits."""

from threading import Event, Thread

import pytest
from django.db import IntegrityError, connection, transaction

from demo.visitor import wait_until
from fleet.models import DisruptionBudget, Node, Pod, Workload
from operations.ledger.disruptions import NoPlace, read_budgets, record_disruptions
from operations.models import Disruption, DomainBudget
from rollouts.lifecycle import PlanState
from rollouts.models import Plan
from tests.locks import one_waits
from tests.make import NOON, a_fleet, a_node, a_plan, a_pod, a_pool
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.sqlite


@pytest.fixture
def plan(db) -> Plan:
    return a_plan(a_fleet("north"))


def nodes(plan: Plan, *names: str, **given) -> None:
    for name in names:
        a_node(plan.cluster, name, **given)


def a_budget(plan: Plan, kind: str = "zone", most: int = 1, **given) -> DomainBudget:
    row = {"max_unavailable": most, "by": "root", "at": NOON}
    return DomainBudget.objects.create(cluster=plan.cluster, kind=kind, **row | given)


def taken(plan: Plan, *names: str, is_rollback: bool = False) -> None:
    uids = dict(Node.objects.filter(cluster=plan.cluster, name__in=names).values_list("uid", "name"))
    with transaction.atomic():
        record_disruptions(
            plan.cluster_id,
            {uid: uids[uid] for uid in sorted(uids)},
            by=plan.mark,
            is_rollback=is_rollback,
            binds_rollbacks=True,
            now=NOON,
        )


def why(plan: Plan, name: str, *, is_rollback: bool = False) -> str:
    return read_budgets(plan.cluster_id, [name], is_rollback=is_rollback).why_not([name])


def another_plan(plan: Plan) -> Plan:
    """Of another object of the same cluster."""
    return Plan.objects.create(
        cluster=plan.cluster, title="other", object_name="b200", object_uid="uid-b200", from_version="1",
        to_version="2",
        author="ada", last_editor="ada", created_at=NOON, edited_at=NOON, state="promoting", state_since=NOON,
        lease_until=NOON,
    )  # fmt: skip


def test_two_plans_take_from_one_budget_and_the_second_waits(plan: Plan):
    """Z15."""
    nodes(plan, "n1", "n2", zone="a")
    a_budget(plan)
    other = another_plan(plan)
    taken(plan, "n1")

    with pytest.raises(NoPlace, match=f"Zone a may have 1 node unavailable and has 1: n1 .plan-{plan.pk}.\\."):
        taken(other, "n2")

    assert [one.node_name for one in Disruption.objects.all()] == ["n1"]


def taken_by(plan: Plan, by: Plan | str, *names: str, is_rollback: bool = False) -> None:
    uids = dict(Node.objects.filter(cluster=plan.cluster, name__in=names).values_list("uid", "name"))
    with transaction.atomic():
        owner = by if isinstance(by, str) else by.mark
        record_disruptions(
            plan.cluster_id, uids, by=owner, is_rollback=is_rollback, binds_rollbacks=owner != by, now=NOON
        )


def test_who_is_no_plan_takes_from_the_same_budget(plan: Plan):
    """Z15: either waits for the other."""
    nodes(plan, "n1", "n2", "n3", zone="a")
    a_budget(plan)
    taken_by(plan, "quarantine", "n1")

    full = "Zone a may have 1 node unavailable and has 1: n1 .quarantine."
    with pytest.raises(NoPlace, match=full):
        taken(plan, "n2")
    with pytest.raises(NoPlace, match=full):
        taken_by(plan, "repair", "n3")

    Disruption.objects.filter(taken_by="quarantine").give_back(now=NOON)
    taken(plan, "n2")
    with pytest.raises(NoPlace, match=f"has 1: n2 .plan-{plan.pk}."):
        taken_by(plan, "repair", "n3")


def test_a_node_is_out_by_one_of_them_only(plan: Plan):
    nodes(plan, "n1", "n2")
    taken_by(plan, "quarantine", "n1")
    taken(plan, "n2")

    with pytest.raises(NoPlace, match=r"^quarantine already changes n1. A node has only one change at a time"):
        taken(plan, "n1")
    with pytest.raises(NoPlace, match=f"^plan-{plan.pk} already changes n2"):
        taken_by(plan, "quarantine", "n2")
    taken_by(plan, "quarantine", "n1")  # its own, once more

    assert [(one.node_name, one.taken_by) for one in Disruption.objects.all()] == [
        ("n1", "quarantine"),
        ("n2", f"plan-{plan.pk}"),
    ]


def test_who_goes_back_waits_for_nobody_who_is_no_plan(plan: Plan):
    """Z32: a node in quarantine may be there for days."""
    nodes(plan, "n1", "n2", zone="a")
    a_budget(plan)
    taken_by(plan, "quarantine", "n1")

    taken(plan, "n1", is_rollback=True)
    taken(plan, "n2", is_rollback=True)

    assert [one.taken_by for one in Disruption.objects.all()] == ["quarantine", f"plan-{plan.pk}"]


def test_each_entry_has_an_owner(plan: Plan):
    with pytest.raises(IntegrityError, match="a_disruption_has_an_owner"):
        Disruption.objects.create(cluster=plan.cluster, node_uid="u", node_name="n1", taken_at=NOON)


@pytest.mark.parametrize("kind", ["zone", "nvlink-domain"])
def test_a_domain_is_what_its_nodes_say(plan: Plan, kind: str):
    column = {"zone": "zone", "nvlink-domain": "nvlink_domain"}[kind]
    nodes(plan, "n1", "n2", **{column: "a"})
    nodes(plan, "n3", **{column: "b"})
    a_budget(plan, kind)
    taken(plan, "n1")

    assert why(plan, "n2")
    assert why(plan, "n3") == ""


def test_racks_are_told_by_the_label_that_somebody_named(plan: Plan):
    nodes(plan, "n1", "n2", labels={"dc.example.com/rack": "r7"})
    nodes(plan, "n3", labels={"dc.example.com/rack": "r8"})
    a_budget(plan, "rack", label="dc.example.com/rack")
    taken(plan, "n1")

    assert why(plan, "n2") == f"Rack r7 may have 1 node unavailable and has 1: n1 (plan-{plan.pk})."
    assert why(plan, "n3") == ""


def test_a_node_of_no_zone_is_bound_by_none(plan: Plan):
    nodes(plan, "n1", "n2")
    a_budget(plan)
    taken(plan, "n1")

    assert why(plan, "n2") == ""


def test_without_a_row_zones_have_no_budget(plan: Plan):
    nodes(plan, "n1", "n2", zone="a")
    taken(plan, "n1")

    assert why(plan, "n2") == ""


def test_a_pool_binds_by_what_is_agreed_of_it(plan: Plan):
    pool = a_pool(plan.cluster, "h200-eu", max_unavailable=2)
    nodes(plan, "n1", "n2", "n3", pool=pool)
    taken(plan, "n1", "n2")

    sentence = "Pool north/h200-eu may have 2 nodes unavailable and has 2: n1 (plan-{0}), n2 (plan-{0})."
    assert why(plan, "n3") == sentence.format(plan.pk)


BROKEN = {
    "not Ready": {"is_ready": False},
    "cordoned": {"is_unschedulable": True},
    "upgrade-failed": {"upgrade_state": "upgrade-failed"},
}


@pytest.mark.parametrize("said", BROKEN)
def test_what_is_broken_by_whomever_has_a_place(plan: Plan, said: str):
    nodes(plan, "n1", zone="a", **BROKEN[said])
    nodes(plan, "n2", zone="a")
    a_budget(plan)

    assert why(plan, "n2") == f"Zone a may have 1 node unavailable and has 1: n1 ({said})."
    assert why(plan, "n1") == "", "already changes"


def test_nobody_who_goes_back_waits_for_what_others_have_broken(plan: Plan):
    """Z32: only what plans themselves have out binds a rollback."""
    nodes(plan, "n1", zone="a", is_ready=False)
    nodes(plan, "n2", "n3", zone="a")
    a_budget(plan)

    assert why(plan, "n2", is_rollback=True) == ""
    taken(plan, "n2", is_rollback=True)
    assert "n2 (plan-" in why(plan, "n3", is_rollback=True)


def test_a_place_counts_once_though_its_node_is_seen_to_be_out(plan: Plan):
    nodes(plan, "n1", "n2", zone="a")
    a_budget(plan, most=2)
    taken(plan, "n1")
    Node.objects.filter(name="n1").update(is_unschedulable=True, is_ready=False)

    assert why(plan, "n2") == ""


def test_a_node_keeps_its_place_in_domains_whose_labels_are_gone_while_it_changes(plan: Plan):
    """Z21: GPU feature discovery is down while the driver changes, and pools select by its labels."""
    pool = a_pool(plan.cluster, "h200-eu", max_unavailable=1)
    nodes(plan, "n1", "n2", nvlink_domain="c.1", pool=pool)
    a_budget(plan, "nvlink-domain")
    taken(plan, "n1")
    Node.objects.filter(name="n1").update(nvlink_domain="")
    pool.nodes.remove(Node.objects.get(name="n1"))

    assert why(plan, "n2").startswith("Pool north/h200-eu may have 1")
    pool.nodes.remove(Node.objects.get(name="n2"))
    assert why(plan, "n2").startswith("NVLink domain c.1 may have 1")


def test_the_same_node_is_taken_once(plan: Plan):
    nodes(plan, "n1", zone="a")
    taken(plan, "n1")
    taken(plan, "n1")

    assert Disruption.objects.count() == 1
    with pytest.raises(IntegrityError), transaction.atomic():
        Disruption.objects.create(
            cluster=plan.cluster,
            taken_by=plan.mark,
            node_uid=Disruption.objects.get().node_uid,
            node_name="n1",
            taken_at=NOON,
        )


def test_with_its_end_a_plan_gives_all_its_places_back(plan: Plan):
    nodes(plan, "n1", "n2", zone="a")
    a_budget(plan)
    taken(plan, "n1")
    Plan.objects.filter(pk=plan.pk).update(state="aborting")
    plan.refresh_from_db()
    plan.move(PlanState.ABORTED, now=NOON, actor="engine", reason="Given up.")

    assert why(plan, "n2") == ""
    assert Disruption.objects.get().ended_at == NOON


def replicas(plan: Plan, *on: str, is_ready: bool = True, owner: str = "chat-5d", **given) -> None:
    for name in on:
        row = {"owner_kind": "ReplicaSet", "owner_name": owner, "is_ready": is_ready, "namespace": "team-a"}
        a_pod(Node.objects.get(name=name), **row | given)


def test_the_last_ready_replica_of_a_service_is_not_taken(plan: Plan):
    """Z15."""
    nodes(plan, "n1", "n2")
    replicas(plan, "n1", "n2")
    taken(plan, "n1")

    alone = "ReplicaSet team-a/chat-5d is Ready on n2 alone. The last Ready replica is not evicted."
    assert why(plan, "n2") == alone
    assert why(plan, "n2", is_rollback=True) == ""


def test_a_replica_on_a_node_that_somebody_cordoned_serves_and_counts(plan: Plan):
    """Z6: such a node is left alone, maybe for weeks: whoever waits for its replicas to be elsewhere waits as long."""
    nodes(plan, "n1", "n2")
    replicas(plan, "n1", "n2")
    Node.objects.filter(name="n1").update(is_unschedulable=True)

    assert why(plan, "n2") == ""
    Node.objects.filter(name="n1").update(upgrade_state="drain-required")
    assert why(plan, "n2").startswith("ReplicaSet team-a/chat-5d is Ready on n2 alone")


def test_two_nodes_that_have_all_replicas_do_not_go_together(plan: Plan):
    nodes(plan, "n1", "n2", "n3")
    replicas(plan, "n1", "n2")
    budgets = read_budgets(plan.cluster_id, ["n1", "n2", "n3"], is_rollback=False)

    assert budgets.going(["n1", "n2", "n3"], 3) == ("n1", "n3")


def test_a_replica_that_is_not_ready_carries_nothing(plan: Plan):
    nodes(plan, "n1", "n2")
    replicas(plan, "n1")
    replicas(plan, "n2", is_ready=False)

    assert why(plan, "n1")
    assert why(plan, "n2") == ""


def test_a_service_of_one_pod_binds_nobody(plan: Plan):
    nodes(plan, "n1")
    replicas(plan, "n1")

    assert why(plan, "n1") == ""


def a_disruption_budget(plan: Plan, *, healthy: int, expected: int, namespace: str = "team-a", **selector) -> None:
    DisruptionBudget.objects.create(
        cluster=plan.cluster, uid=f"uid-of-{namespace}", name="chat", namespace=namespace, selector=selector,
        desired_healthy=healthy, expected_pods=expected, changed_at=NOON,
    )  # fmt: skip


CHAT = {"matchLabels": {"app": "chat"}}


def test_a_service_that_is_all_on_one_node_and_evicted_by_a_budget_binds_nobody(plan: Plan):
    """The node that is back first takes what the others lose: waiting would spread it no further, for ever."""
    nodes(plan, "n1", "n2")
    replicas(plan, "n1", "n1", labels={"app": "chat"})
    a_disruption_budget(plan, healthy=1, expected=2, **CHAT)

    assert why(plan, "n1") == ""


@pytest.mark.parametrize(
    "budget",
    [
        None,
        {"healthy": 1, "expected": 2, "matchLabels": {"app": "other"}},
        {"healthy": 1, "expected": 2, "namespace": "team-b", **CHAT},
        {"healthy": 0, "expected": 2, **CHAT},
        {"healthy": 2, "expected": 9, **CHAT},
        {"healthy": 1, "expected": 2, "matchLabels": "rubbish"},
    ],
    ids=["none", "of others", "elsewhere", "keeps none", "keeps one of others", "rubbish"],
)
def test_without_a_budget_that_keeps_one_of_them_it_does_and_how_to_go_on_is_said(plan: Plan, budget: dict | None):
    nodes(plan, "n1", "n2")
    replicas(plan, "n1", "n1", labels={"app": "chat"})
    if budget:
        a_disruption_budget(plan, **budget)

    assert why(plan, "n1") == (
        "ReplicaSet team-a/chat-5d is Ready on n1 alone. The last Ready replica is not evicted. All its 2 pods "
        "are on this node, and no PodDisruptionBudget keeps a pod Ready during the evictions: add such a budget, "
        "spread the pods, or exclude the node."
    )


@pytest.mark.parametrize(("healthy", "expected"), [(2, 2), (3, 2), (9, 9)])
def test_a_budget_that_lets_none_of_them_go_protects_nothing_and_that_is_said(plan: Plan, healthy: int, expected: int):
    """Its node would be drained for ever: the API server refuses each eviction."""
    nodes(plan, "n1", "n2")
    replicas(plan, "n1", "n1", labels={"app": "chat"})
    a_disruption_budget(plan, healthy=healthy, expected=expected, **CHAT)

    assert why(plan, "n1") == (
        "ReplicaSet team-a/chat-5d is Ready on n1 alone. The last Ready replica is not evicted. All its 2 pods "
        "are on this node, and PodDisruptionBudget team-a/chat allows no eviction: let the budget allow an "
        "eviction, spread the pods, or exclude the node."
    )


def test_a_second_budget_that_lets_none_go_holds_against_one_that_does(plan: Plan):
    nodes(plan, "n1", "n2")
    replicas(plan, "n1", "n1", labels={"app": "chat"})
    a_disruption_budget(plan, healthy=1, expected=2, **CHAT)
    DisruptionBudget.objects.create(
        cluster=plan.cluster, uid="uid-of-all", name="all", namespace="team-a", selector={}, desired_healthy=2,
        expected_pods=2, changed_at=NOON,
    )  # fmt: skip

    assert "several PodDisruptionBudgets cover them (team-a/all, team-a/chat), so the API server evicts no pod" in why(
        plan, "n1"
    )


def rolling(plan: Plan, *, desired: int | None) -> None:
    """A Deployment whose new pod found no node, since its old one has the GPUs."""
    nodes(plan, "n1", "n2")
    replicas(plan, "n1")
    replicas(plan, "n2", is_ready=False, owner="chat-6e", phase="Pending")
    Pod.objects.filter(owner_name="chat-6e").update(node=None, node_name="")
    for name in ("chat-5d", "chat-6e"):
        a_workload(plan, "ReplicaSet", name, "Deployment/chat", desired=1)
    Workload.objects.create(
        cluster=plan.cluster, uid="uid-of-chat", kind="Deployment", namespace="team-a", name="chat", created_at=NOON,
        changed_at=NOON, desired=desired,
    )  # fmt: skip


def test_a_service_of_one_replica_stays_one_while_it_is_rolled_over(plan: Plan):
    """Its new pod waits for the GPUs of its old one: waiting for it would hold the node for ever."""
    rolling(plan, desired=1)

    assert why(plan, "n1") == ""


@pytest.mark.parametrize("desired", [2, None])
def test_how_to_go_on_is_said_where_another_replica_has_no_node(plan: Plan, desired: int | None):
    rolling(plan, desired=desired)

    assert why(plan, "n1") == (
        "Deployment team-a/chat is Ready on n1 alone. The last Ready replica is not evicted. Another of its pods "
        "has no node: free GPUs for it, or exclude the node."
    )


def test_a_stateful_set_of_one_replica_binds_nobody_while_a_second_is_going_up(plan: Plan):
    nodes(plan, "n1", "n2")
    replicas(plan, "n1", owner="db", owner_kind="StatefulSet")
    replicas(plan, "n2", owner="db", owner_kind="StatefulSet", is_ready=False)
    a_workload(plan, "StatefulSet", "db", "/", desired=1)

    assert why(plan, "n1") == ""
    Workload.objects.filter(name="db").update(desired=2)
    assert why(plan, "n1").startswith("StatefulSet team-a/db is Ready on n1 alone")


def test_while_another_replica_is_on_its_way_it_is_waited_for_whatever_the_budget(plan: Plan):
    nodes(plan, "n1", "n2")
    replicas(plan, "n1", "n1", labels={"app": "chat"})
    replicas(plan, "n2", is_ready=False, labels={"app": "chat"})
    a_disruption_budget(plan, healthy=1, expected=3, **CHAT)

    assert why(plan, "n1") == (
        "ReplicaSet team-a/chat-5d is Ready on n1 alone. The last Ready replica is not evicted. Another of its "
        "pods on n2 is not Ready, so the node waits. Repair the pod, or exclude the node."
    )


def of_a_stateful_set(plan: Plan, *on: str, desired: int) -> None:
    nodes(plan, "n1", "n2", "n3")
    replicas(plan, *on, owner="db", owner_kind="StatefulSet", labels={"app": "chat"})
    a_workload(plan, "StatefulSet", "db", "/", desired=desired)


def test_while_a_pod_is_being_deleted_its_service_is_one_of_several_still(plan: Plan):
    """A StatefulSet makes no other until it is gone: its last Ready replica went with it."""
    of_a_stateful_set(plan, "n1", "n2", desired=2)
    Pod.objects.filter(node_name="n2").update(deleted_at=NOON, is_ready=False)

    assert why(plan, "n1") == (
        "StatefulSet team-a/db is Ready on n1 alone. The last Ready replica is not evicted. It has 1 of its 2 "
        "pods, so the node waits. Wait for the other pods, or exclude the node."
    )


def test_it_is_not_all_on_one_node_while_a_pod_of_it_is_still_to_be_made(plan: Plan):
    of_a_stateful_set(plan, "n1", "n1", desired=3)
    a_disruption_budget(plan, healthy=2, expected=3, **CHAT)

    assert "It has 2 of its 3 pods" in why(plan, "n1")


def test_two_budgets_that_each_let_one_go_protect_nothing(plan: Plan):
    """Z30: the API server evicts no pod that several count."""
    nodes(plan, "n1", "n2")
    replicas(plan, "n1", "n1", labels={"app": "chat"})
    a_disruption_budget(plan, healthy=1, expected=2, **CHAT)
    DisruptionBudget.objects.create(
        cluster=plan.cluster, uid="uid-of-all", name="all", namespace="team-a", selector={}, desired_healthy=1,
        expected_pods=2, changed_at=NOON,
    )  # fmt: skip

    assert "PodDisruptionBudgets cover them (team-a/all, team-a/chat)" in why(plan, "n1")


def a_workload(plan: Plan, kind: str, name: str, owner: str, **given) -> None:
    owner_kind, owner_name = owner.split("/")
    Workload.objects.create(
        cluster=plan.cluster, uid=f"uid-of-{name}", kind=kind, namespace="team-a", name=name, created_at=NOON,
        changed_at=NOON, owner_kind=owner_kind, owner_name=owner_name, **given,
    )  # fmt: skip


def test_two_replica_sets_of_a_deployment_are_one_service(plan: Plan):
    nodes(plan, "n1", "n2")
    replicas(plan, "n1")
    replicas(plan, "n2", owner="chat-6e")
    for name in ("chat-5d", "chat-6e"):
        a_workload(plan, "ReplicaSet", name, "Deployment/chat")
    taken(plan, "n1")

    assert why(plan, "n2").startswith("Deployment team-a/chat is Ready on n2 alone")


def test_workers_of_a_leader_are_a_gang_and_no_service(plan: Plan):
    nodes(plan, "n1", "n2")
    replicas(plan, "n1", "n2", owner="big-0", owner_kind="StatefulSet")
    a_workload(plan, "StatefulSet", "big-0", "Pod/big-0")
    taken(plan, "n1")

    assert why(plan, "n2") == ""


def test_other_clusters_have_ledgers_of_their_own(plan: Plan):
    nodes(plan, "n1", zone="a")
    a_budget(plan)
    taken(plan, "n1")
    south = a_plan(a_fleet("south"))
    a_node(south.cluster, "m1", zone="a")
    a_budget(south)

    assert why(south, "m1") == ""


@pytest.mark.parametrize("number", [2, 600])
def test_what_a_look_costs_does_not_grow(plan: Plan, number: int, django_assert_max_num_queries):
    pool = a_pool(plan.cluster, "h200-eu", max_unavailable=2)
    nodes(plan, *(f"n{one}" for one in range(number)), zone="a", pool=pool)
    asked = [f"n{one}" for one in range(number)]

    with django_assert_max_num_queries(7):
        budgets = read_budgets(plan.cluster_id, asked, is_rollback=False)

    assert len(budgets.going(asked, number)) == 2


@pytest.mark.django_db(transaction=True)
def test_of_two_plans_that_race_for_the_last_place_one_loses():
    """The second waits for the first's transaction, and reads what it took."""
    first = a_plan(a_fleet("north"))
    nodes(first, "n1", "n2", zone="a")
    a_budget(first)
    second, has_taken, refusals = another_plan(first), Event(), []

    def other() -> None:
        has_taken.wait(PATIENCE_S)
        try:
            taken(Plan.objects.get(pk=second.pk), "n2")
        except NoPlace as refusal:
            refusals.append(str(refusal))
        finally:
            connection.close()

    thread = Thread(target=other)
    thread.start()
    with transaction.atomic():
        first.keep_lease(now=NOON)
        record_disruptions(
            first.cluster_id, {Node.objects.get(name="n1").uid: "n1"}, by=first.mark, binds_rollbacks=True, now=NOON
        )
        has_taken.set()
        if connection.vendor == "postgresql":  # SQLite has one writer: the other waits for its transaction
            wait_until(one_waits, what="a plan that waits", timeout_s=PATIENCE_S)
    thread.join()

    assert [one.node_name for one in Disruption.objects.all()] == ["n1"]
    assert len(refusals) == 1
    assert "n1 (plan-" in refusals[0]
