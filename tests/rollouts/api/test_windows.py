"""Maintenance windows over REST: what is read, what is refused, who may."""

from datetime import timedelta

import pytest

from people.models import AuditEntry
from rollouts.commands import maintenance_windows
from rollouts.commands.refusals import Refusal
from rollouts.models import MaintenanceWindow
from rollouts.queries.restraints import Windows, restraints_of, windows_of
from tests.callers import calling
from tests.make import NOON, a_fleet, a_plan, a_pool, a_user, a_window

NIGHTS = {"rule": "FREQ=WEEKLY;BYDAY=SA,SU", "opens_at": "02:00", "zone": "Europe/Berlin", "duration_s": 14400}


def post(client, path: str, **asked):
    return client.post(f"/api/v1/{path}", asked, format="json")


def test_a_window_says_when_it_opens(root):
    cluster = a_fleet("north")

    said = post(root, "windows", cluster=cluster.pk, reason="Nobody trains then.", **NIGHTS).json()

    assert said["cluster"]["name"] == "north"
    assert said["next"]["opens_at"] > NOON.isoformat()
    assert said["opens_at"] == "02:00"
    (entry,) = AuditEntry.objects.filter(subject=f"window:{said['id']}")
    assert (entry.verb, entry.actor, entry.reason) == ("make", "root", "Nobody trains then.")


def test_it_is_shown_before_it_is_made(root):
    plan = a_plan()

    shown = post(root, "window-previews", cluster=plan.cluster_id, **NIGHTS).json()

    assert len(shown["opens"]) == 5
    assert shown["is_open"] is False
    assert shown["bound"][0]["sentence"] == "3 nodes stay held."
    assert not MaintenanceWindow.objects.exists()


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("opens_at", ["02:00", "11:30", "14:00"])
def test_from_now_on_counts_no_opening_that_is_over(root, number, opens_at):
    asked = {"rule": f"FREQ=DAILY;COUNT={number}", "opens_at": opens_at, "zone": "UTC", "duration_s": 3600}

    shown = post(root, "window-previews", cluster=a_fleet().pk, **asked).json()

    assert len(shown["opens"]) == number
    assert shown["is_open"] is (opens_at == "11:30")


def test_that_of_a_pool_is_shown_open_only_while_its_cluster_is(root):
    """As rounds have it: one window of each place must be open."""
    plan = a_plan()
    pool = plan.cluster.pools.get()
    a_window(plan.cluster, opens_at="02:00", duration_s=10800)
    a_window(plan.cluster, pool=a_pool(plan.cluster, "other"), opens_at="03:00")
    asked = {"rule": "FREQ=DAILY", "opens_at": "00:00", "zone": "UTC", "duration_s": 72000}

    shown = post(root, "window-previews", pool=pool.pk, **asked).json()

    made = post(root, "windows", pool=pool.pk, **asked)
    closed = Windows(NOON, windows_of(plan.cluster_id)).closed(frozenset({pool.pk}))
    assert made.status_code == 201
    assert shown["is_open"] is False
    assert shown["bound"]
    assert [(each["opens_at"][:16], each["closes_at"][11:16]) for each in shown["opens"]] == [
        (f"2026-11-{day}T02:00", "05:00") for day in range(22, 27)
    ]
    assert closed.ends_at == NOON + timedelta(hours=14)


def test_that_of_a_cluster_is_shown_without_those_of_its_pools(root):
    cluster = a_fleet()
    a_window(cluster, pool=cluster.pools.get(), opens_at="02:00")
    asked = {"rule": "FREQ=DAILY", "opens_at": "00:00", "zone": "UTC", "duration_s": 72000}

    assert post(root, "window-previews", cluster=cluster.pk, **asked).json()["is_open"] is True


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"rule": "FREQ=SECONDLY"}, "rule"),
        ({"rule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}, "rule"),
        ({"rule": "x" * 201}, "rule"),
        ({"zone": "Europe/Atlantis"}, "zone"),
        ({"zone": "../etc/passwd"}, "zone"),
        ({"duration_s": 60}, "duration_s"),
        ({"duration_s": 10**9}, "duration_s"),
        ({"opens_at": "25:00"}, "opens_at"),
        ({"first_day": "1999-01-01"}, "first_day"),
        ({"first_day": "9999-12-31"}, "first_day"),
        ({"cluster": None}, "cluster"),
    ],
)
def test_what_makes_no_window_is_refused_with_its_field(root, asked, field):
    body = {"cluster": a_fleet().pk, **NIGHTS, **asked}

    reply = post(root, "windows", **body)

    assert reply.status_code == 400
    assert reply.json()["errors"][0]["field"] == field
    assert not MaintenanceWindow.objects.exists()


def test_one_that_is_never_open_with_those_of_its_cluster_is_refused(root):
    cluster = a_fleet("north")
    a_window(cluster, rule="FREQ=WEEKLY;BYDAY=MO")

    reply = post(root, "windows", pool=cluster.pools.get().pk, **NIGHTS)

    assert reply.status_code == 400
    assert "never open at the same time as the windows of cluster north" in reply.json()["detail"]


def test_one_of_a_cluster_that_never_meets_those_of_a_pool_is_refused(root):
    cluster = a_fleet("north")
    a_window(cluster, pool=cluster.pools.get(), rule="FREQ=WEEKLY;BYDAY=MO")

    assert "the windows of pool north/h200" in post(root, "windows", cluster=cluster.pk, **NIGHTS).json()["detail"]


def test_twenty_are_enough_for_one_place(root):
    cluster = a_fleet("north")
    for _ in range(maintenance_windows.MOST):
        a_window(cluster)

    reply = post(root, "windows", cluster=cluster.pk, **NIGHTS)

    assert (reply.status_code, MaintenanceWindow.objects.count()) == (409, maintenance_windows.MOST)


def test_it_is_removed_with_a_reason_and_once(root):
    plan = a_plan()
    window = a_window(plan.cluster)
    late = MaintenanceWindow.objects.get(pk=window.pk)
    assert restraints_of(plan, now=NOON).of_nodes(["x"])

    assert post(root, f"windows/{window.pk}/removals").status_code == 400
    assert post(root, f"windows/{window.pk}/removals", reason="24/7 now.").status_code == 204

    assert not restraints_of(plan, now=NOON).of_nodes(["x"])
    assert plan.events.first().to == "window removed"
    with pytest.raises(Refusal, match="Somebody has already removed this window"):
        maintenance_windows.remove_window(late, actor="ben", reason="x", now=NOON)
    assert AuditEntry.objects.filter(subject=f"window:{late.pk}", verb="remove").count() == 1


def test_who_may(nobody, eve, bob, ada, root):
    """An operator who could add a window could open the cluster for their own plan."""
    cluster = a_fleet()
    window = a_window(cluster)
    asked = {"cluster": cluster.pk, "reason": "x", **NIGHTS}

    def answers(path: str) -> list[int]:
        return [post(client, path, **asked).status_code for client in (nobody, eve, bob, ada)]

    assert answers("windows") == [401, 403, 403, 403]
    assert answers("window-previews") == [401, 403, 403, 403]
    assert answers(f"windows/{window.pk}/removals") == [401, 404, 403, 403]
    assert eve.get("/api/v1/windows").json()["count"] == 0
    assert ada.get("/api/v1/windows").json()["count"] == 1
    assert MaintenanceWindow.objects.count() == 1


def test_the_admin_of_a_pool_agrees_on_its_windows(now, db):
    cluster = a_fleet("north")
    client = calling(a_user("pia", role="admin", on=cluster.pools.get()))

    assert post(client, "windows", pool=cluster.pools.get().pk, **NIGHTS).status_code == 201
    assert post(client, "windows", cluster=cluster.pk, **NIGHTS).status_code == 403
