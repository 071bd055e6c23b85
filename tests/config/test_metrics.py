from datetime import timedelta

import pytest
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from capacity.models import FreeGpuSample
from config.celery import app as celery
from config.models import ProcessEnd
from config.sweeps import SWEEPS
from fleet.models import DomainEvent, Observer, ObservingWorker
from fleet.models.observer import LEASE
from fleet.tasks import sweep_observers, tidy_up
from kube.credential_life import CredentialLife
from notifications.models import Delivery
from people.models import ApiToken, AuditEntry
from people.tasks import verify_audit
from rollouts.findings.plan_findings import LEFT_BEHIND
from rollouts.models import GateAnswer
from tests.callers import calling
from tests.make import (
    NOON,
    a_bookmark,
    a_case,
    a_cluster,
    a_draft,
    a_finding,
    a_fleet,
    a_node,
    a_node_event,
    a_pool,
    a_stage_to_approve,
    a_token,
    a_user,
    an_operation,
)
from tests.notifications.make import a_channel, happened


def scraped(client) -> dict[tuple, float]:
    reply = client.get("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"})
    assert reply.status_code == 200
    families = text_string_to_metric_families(reply.content.decode())
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def test_what_it_measures(bob):
    plan = a_draft(a_fleet("east"))
    Observer.objects.create(cluster=plan.cluster, lease_until=NOON - timedelta(seconds=5))

    found = scraped(bob)

    assert found["quarterdeck_plans", "draft"] == 1
    assert found["quarterdeck_plans", "promoting"] == 0
    assert found["quarterdeck_bookmark_age_seconds", "east", "nodes"] == 0
    assert found["quarterdeck_observer_lease_seconds", "east"] == -5
    assert found["quarterdeck_plan_overdue_seconds",] == 0


def test_what_was_never_heard_has_no_age(bob):
    cluster = a_cluster("west", seen_at=None)
    a_bookmark(cluster, "nodes", state="forbidden", last_seen_at=None)

    found = scraped(bob)

    assert ("quarterdeck_bookmark_age_seconds", "west", "nodes") not in found
    assert found["quarterdeck_bookmark_state", "west", "nodes", "forbidden"] == 1


def test_how_well_a_cluster_is_seen(bob):
    east, west = a_cluster("east"), a_cluster("west", foreign_uid="another")
    a_bookmark(east, "pods.example.com", unread={"u": {"name": "rotten", "reason": "Expected `str`"}})
    late = {"lease_until": NOON, "lag_ms": 4200, "behind_since": NOON}
    Observer.objects.create(cluster=east, clock_skew_s=-61.5, **late)
    Observer.objects.create(cluster=west, lease_until=NOON - timedelta(minutes=5), behind_since=NOON)

    found = scraped(bob)

    assert found["quarterdeck_observer_lag_seconds", "east"] == 4.2
    assert (found["quarterdeck_observer_behind", "east"], found["quarterdeck_observer_behind", "west"]) == (1, 0)
    assert found["quarterdeck_cluster_clock_skew_seconds", "east"] == -61.5
    assert ("quarterdeck_cluster_clock_skew_seconds", "west") not in found
    assert (found["quarterdeck_cluster_foreign", "east"], found["quarterdeck_cluster_foreign", "west"]) == (0, 1)
    assert found["quarterdeck_unread_objects", "east", "pods.example.com"] == 1


def test_how_many_clusters_can_be_watched_and_are(bob, now):
    ObservingWorker.report("one:7", threads=8, now=NOON)
    ObservingWorker.report("died:7", threads=8, now=NOON - 2 * LEASE)
    Observer.objects.create(cluster=a_cluster("east"), lease_until=NOON + timedelta(seconds=9))
    Observer.objects.create(cluster=a_cluster("west"), lease_until=NOON - timedelta(minutes=9))

    found = scraped(bob)

    assert found["quarterdeck_observing_workers",] == 1
    assert found["quarterdeck_observer_threads",] == 8
    assert found["quarterdeck_observer_threads_in_use",] == 1
    assert found["quarterdeck_observed_clusters", "unwatched"] == 1


def test_which_processes_died_and_of_what(bob):
    for cause in ("SIGSEGV", "SIGSEGV", "exit 1"):
        ProcessEnd.note("observe", cause, host="worker-7", now=NOON)

    found = scraped(bob)

    assert found["quarterdeck_process_ends_total", "SIGSEGV", "observe"] == 2
    assert found["quarterdeck_process_ends_total", "exit 1", "observe"] == 1
    last = found["quarterdeck_process_last_end_timestamp_seconds", "SIGSEGV", "worker-7", "observe"]
    assert last == NOON.timestamp()


def test_findings_by_rule_and_severity(bob):
    east = a_cluster("east")
    a_finding(east, rule="xid", severity="critical", state="acknowledged")
    for number in range(2):
        a_finding(east, f"node gpu-{number}", rule="xid", severity="critical")
    a_finding(east, "node gpu-8", rule="xid", severity="critical", is_shadow=True)
    a_finding(east, "node gpu-9", rule="xid", severity="critical", resolved_at=NOON)

    found = {labels[1:]: value for labels, value in scraped(bob).items() if labels[0] == "quarterdeck_findings"}

    assert found == {("east", "xid", "critical", "open"): 2, ("east", "xid", "critical", "acknowledged"): 1}


def test_ends_of_credentials_that_a_person_renews(bob):
    soon, later = NOON + timedelta(days=2), NOON + timedelta(days=40)
    lives = [CredentialLife("token", NOON - timedelta(days=90), soon), CredentialLife("x", NOON, NOON)]
    credentials = [life.written() for life in lives]
    Observer.objects.create(cluster=a_cluster("east"), lease_until=NOON, credentials=credentials)
    Observer.objects.create(cluster=a_cluster("west"), lease_until=NOON)  # never read
    a_channel("siem", "syslog", certificate_until=later)

    found = {labels[1:]: value for labels, value in scraped(bob).items() if "credential_expiry" in labels[0]}

    assert found.pop(("client certificate", "siem", "channel"), None) == later.timestamp()
    assert {key: value for key, value in found.items() if "user" not in key} == {
        ("token", "east", "cluster"): soon.timestamp()
    }


def test_the_end_of_an_api_token_names_its_user_and_the_token(bob):
    now, user = timezone.now(), a_user("ada")
    ends = now + timedelta(days=2)
    tokens = [
        ApiToken.issue(user=user, name=name, permissions=[], now=now - timedelta(days=90), expires_at=ends)[0]
        for name in ("ci", "unused")
    ]
    ApiToken.objects.filter(pk=tokens[0].pk).update(last_used_at=now)

    found = [labels[1:] for labels in scraped(bob) if "credential_expiry" in labels[0] and "ada" in labels]

    assert found == [(f"API token ci ({tokens[0].hint})", "ada", "user")]


def test_gpus_of_a_pool_by_use_and_idle_ones(bob):
    pool = a_pool(a_cluster("east"), "h200")
    node = a_node(pool.cluster, pool=pool)
    idle = {"web/a": {"has": "2 GPUs", "idle_hours": {"GPU-1": 2, "GPU-2": 3}}, "web/b": {"idle_hours": {"GPU-2": 3}}}
    a_finding(pool.cluster, node=node, rule="idle-gpus", severity="note", facts={"pods": idle})
    a_pool(pool.cluster, "empty", selector="no=such")

    found = scraped(bob)

    assert found["quarterdeck_pool_gpus", "east", "h200", "gpu", "allocated"] == 0
    assert found["quarterdeck_pool_gpus", "east", "h200", "gpu", "free"] == 8
    assert found["quarterdeck_pool_idle_gpus", "east", "h200"] == 2
    assert found["quarterdeck_pool_idle_gpus", "east", "empty"] == 0
    assert ("quarterdeck_pool_gpus", "east", "empty", "gpu", "free") not in found


def test_stranded_gpus_of_a_pool_are_those_of_its_newest_sample(bob, now):
    pool, silent = a_pool(a_cluster("east"), "h200"), a_pool(a_cluster("west"), "h100")
    for hours, stranded in ((1, {"cpu": 3, "memory": 1}), (0, {"cpu": 2})):
        FreeGpuSample.objects.create(pool=pool, hour=now - timedelta(hours=hours), free=5, usable=2, stranded=stranded)
    FreeGpuSample.objects.create(pool=silent, hour=now - timedelta(hours=3), free=5, usable=2, stranded={"cpu": 3})

    found = {key[1:]: value for key, value in scraped(bob).items() if key[0] == "quarterdeck_pool_stranded_gpus"}

    assert found == {("cpu", "east", "h200"): 2}


def test_the_sweep_of_the_audit_chain_counts_altered_decisions(bob):
    for number in range(3):
        AuditEntry.record("plan-7", verb="plan.pause", actor="ada", reason=f"{number}", now=NOON)
    assert verify_audit.apply().get() == 0
    AuditEntry.objects.filter(number=2).update(reason="Nothing happened.")

    verify_audit.apply()

    assert scraped(bob)["quarterdeck_swept_total", "audit"] == 1


def test_approvals_and_gates_that_wait(bob, now):
    stage = a_stage_to_approve()
    since = NOON - timedelta(minutes=10)
    for gate, answer in (("approval", "wait"), ("window", "pass")):
        GateAnswer.objects.create(stage=stage, gate=gate, answer=answer, title="", since=since, at=NOON)
    old = {"is_current": False, "title": "", "since": since, "at": since}
    GateAnswer.objects.create(stage=stage, gate="approval", answer="fail", **old)

    found = scraped(bob)

    name = stage.plan.cluster.name
    assert found["quarterdeck_approvals_waiting", name] == 1
    assert found["quarterdeck_approval_waiting_seconds", name] == 600
    assert found["quarterdeck_gates", "wait", "approval"] == found["quarterdeck_gates", "pass", "window"] == 1
    assert ("quarterdeck_gates", "fail", "approval") not in found


def test_operations_and_their_nodes(bob):
    an_operation(a_cluster(), "gpu-0", "gpu-1")

    found = scraped(bob)

    assert (found["quarterdeck_operations", "running"], found["quarterdeck_operations", "paused"]) == (1, 0)
    assert (found["quarterdeck_operation_nodes", "pending"], found["quarterdeck_operation_nodes", "failed"]) == (2, 0)


def test_open_cases_by_state(bob):
    east = a_cluster("east")
    for state in ("drain-blocked", "drain-blocked", "closed"):
        a_case(a_node(east), state=state)

    found = {labels[1:]: value for labels, value in scraped(bob).items() if labels[0] == "quarterdeck_cases"}

    assert found == {("east", "drain-blocked"): 2}


def test_deliveries_and_what_waits(bob, now):
    finding = a_finding(a_cluster())
    event = happened(finding, at=NOON - timedelta(minutes=2))
    later = happened(finding, at=NOON - timedelta(hours=9))
    DomainEvent.objects.filter(pk=later.pk).update(kind="finding.of-a-later-version")
    channel = a_channel("ops", state="failing", delivered_at=NOON)
    row = {"channel": channel, "channel_name": "ops", "key": "k", "act": "open", "message": {}, "next_try_at": NOON}
    Delivery.objects.create(**row, state="waiting", created_at=NOON - timedelta(minutes=1))
    Delivery.objects.create(**row, state="dead", created_at=NOON - timedelta(hours=2))
    Delivery.objects.create(**row, state="sent", created_at=NOON - timedelta(days=2))

    found = scraped(bob)

    assert event.routed_at is None
    assert found["quarterdeck_event_waiting_seconds",] == 120
    assert found["quarterdeck_delivery_waiting_seconds",] == 60
    assert (found["quarterdeck_deliveries", "ops", "waiting"], found["quarterdeck_deliveries", "ops", "dead"]) == (1, 1)
    assert ("quarterdeck_deliveries", "ops", "sent") not in found
    assert found["quarterdeck_channel_failing", "ops"] == 1
    assert found["quarterdeck_channel_last_delivery_timestamp_seconds", "ops"] == NOON.timestamp()


@pytest.mark.parametrize("number", [1, 5])
def test_a_scrape_costs_the_same_queries_whatever_there_is(bob, number, django_assert_num_queries):
    for _ in range(number):
        a_cluster()

    with django_assert_num_queries(40):
        bob.get("/metrics")


def test_who_may_scrape(now, db, nobody, eve):
    scraper = calling(token=a_token(a_user(role="viewer"), permissions=["see"]))
    of_one_cluster = calling(a_user(role="viewer", on=a_cluster()))

    assert nobody.get("/metrics").status_code == 401
    assert eve.get("/metrics").status_code == of_one_cluster.get("/metrics").status_code == 403
    assert scraper.get("/metrics").status_code == 200


@pytest.fixture
def at_noon(monkeypatch):
    """Sets the time of the workers' clock, in seconds after noon."""
    clock = [NOON]
    monkeypatch.setattr(timezone, "now", lambda: clock[0])
    return lambda seconds: clock.__setitem__(0, NOON + timedelta(seconds=seconds))


def test_what_sweeps_found_and_when_they_last_came_by(bob, at_noon):
    """A sweep that stopped is noticed by nobody else."""
    gone = a_cluster("east")
    Observer.objects.create(cluster=gone, lease_until=NOON - timedelta(minutes=9))
    a_node_event(a_node(gone), at=NOON - timedelta(days=1000))
    assert not [each for each in scraped(bob) if each[0].startswith("quarterdeck_swe")]

    tidy_up.apply()
    sweep_observers.apply()
    at_noon(30)
    sweep_observers.apply()

    found = scraped(bob)
    assert (found["quarterdeck_swept_total", "rows"], found["quarterdeck_swept_total", "leases"]) == (1, 2)
    assert found["quarterdeck_sweep_last_timestamp_seconds", "rows"] == NOON.timestamp()
    assert found["quarterdeck_sweep_last_timestamp_seconds", "leases"] == NOON.timestamp() + 30


@pytest.mark.parametrize(("after_s", "written"), [(59, 0), (60, 60)])
def test_a_sweep_that_finds_nothing_is_written_once_a_minute(bob, db, at_noon, after_s, written):
    sweep_observers.apply()
    at_noon(after_s)
    sweep_observers.apply()

    last = scraped(bob)["quarterdeck_sweep_last_timestamp_seconds", "leases"]

    assert last == NOON.timestamp() + written


def test_what_is_noted_is_what_beat_sweeps():
    assert set(SWEEPS) <= {entry["task"] for entry in celery.conf.beat_schedule.values()}


def test_what_plans_that_are_over_left_on_nodes(bob):
    east, _ = a_cluster("east"), a_cluster("west")
    for number, state in enumerate(["open", "muted", "confirming", "resolved"]):
        resolved_at = NOON if state == "resolved" else None
        a_finding(east, rule=LEFT_BEHIND.key, subject=f"node {number}", state=state, resolved_at=resolved_at)

    found = scraped(bob)

    assert found["quarterdeck_left_behind", "east", "hold"] == 2
    assert found["quarterdeck_left_behind", "east", "exclusion"] == 0
    assert found["quarterdeck_left_behind", "west", "hold"] == 0
