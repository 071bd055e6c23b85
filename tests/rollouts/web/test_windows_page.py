"""The form of a maintenance window with its preview, the list, and what pages of clusters and pools say of it."""

import re
from datetime import timedelta

import pytest
import time_machine

from rollouts.commands import fleet_freezes
from rollouts.commands.fleet_freezes import Where
from rollouts.models import MaintenanceWindow
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, Page, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
NIGHTS = {"rule": "FREQ=WEEKLY;BYDAY=SA", "opens_at": "02:00", "zone": "Europe/Berlin", "hours": "4", "minutes": "30"}


@pytest.fixture
def root():
    return visiting(make.a_user("root", role="admin"))


def send(client, path: str, **asked) -> tuple[int, str]:
    response = client.post(path, asked, follow=True)
    return response.status_code, Page(response.content.decode()).text


def look(on: str) -> str:
    tomorrow = NOON.date() + timedelta(days=1)
    return f"{on}|FREQ=WEEKLY;BYDAY=SA|02:00|Europe/Berlin|4|30|{tomorrow}"


def test_it_is_shown_before_it_is_made(root):
    plan = make.a_plan(make.a_fleet("north"))
    on = f"cluster-{plan.cluster_id}"

    _, shown = send(root, "/windows/new", on=on, **NIGHTS)

    assert not MaintenanceWindow.objects.exists()
    assert "When cluster north would be open" in shown
    assert "opens next in" in shown
    assert "Until it opens: 3 nodes stay held." in shown
    _, done = send(root, "/windows/new", on=on, seen=look(on), reason="Nobody trains then.", **NIGHTS)
    window = MaintenanceWindow.objects.get()
    assert (window.duration_s, window.zone) == (16200, "Europe/Berlin")
    assert "Window created: cluster north releases nodes only inside its windows." in done
    assert "closed, opens in" in done


def test_what_was_changed_after_the_look_is_looked_at_first(root):
    on = f"cluster-{make.a_fleet().pk}"

    send(root, "/windows/new", **{"on": on, "seen": look(on), **NIGHTS, "hours": "5"})

    assert not MaintenanceWindow.objects.exists()


def test_made_is_what_was_shown_though_another_day_began_meanwhile(root):
    """Every other day counts from the first one, which is today where none is given."""
    asked = {**NIGHTS, "on": f"cluster-{make.a_fleet().pk}", "rule": "FREQ=DAILY;INTERVAL=2"}
    with time_machine.travel(NOON, tick=False):
        shown = root.post("/windows/new", asked).content.decode()
    seen = re.search(r'name="seen" value="([^"]*)"', shown)[1]

    with time_machine.travel(NOON + timedelta(days=1), tick=False):
        send(root, "/windows/new", seen=seen, **asked)

    assert not MaintenanceWindow.objects.exists()


def test_one_opening_can_be_made_later_today(root):
    asked = {"rule": "FREQ=DAILY;COUNT=1", "opens_at": "14:00", "zone": "UTC"}

    _, shown = send(root, "/windows/new", **{**NIGHTS, "on": f"cluster-{make.a_fleet().pk}", **asked})

    assert "Saturday 2026-11-21 14:00 UTC" in shown


def test_that_of_a_pool_is_not_shown_open_while_its_cluster_is_shut(root):
    cluster = make.a_fleet("north")
    make.a_window(cluster)
    asked = {"on": f"pool-{cluster.pools.get().pk}", "rule": "FREQ=DAILY", "opens_at": "01:00", "hours": "20"}

    _, shown = send(root, "/windows/new", **{**NIGHTS, "zone": "UTC", **asked})

    assert "open now" not in shown
    assert "Sunday 2026-11-22 02:00 UTC" in shown


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"rule": "FREQ=SECONDLY"}, "is not allowed: a window opens at most once a day"),
        ({"rule": "FREQ=DAILY;UNTIL=20200101"}, "does not open"),
        ({"rule": "x" * 300}, "At most 200 characters"),
        ({"zone": "Europe/Atlantis"}, "Unknown time zone Europe/Atlantis"),
        ({"opens_at": "soon"}, "Enter a time such as"),
        ({"first_day": "soon"}, "Enter a date such as"),
        ({"hours": "many"}, "whole numbers"),
        ({"hours": "４"}, "0 to 9"),
        ({"hours": "-1"}, "Hours and minutes must be whole numbers of 0 or more"),
        ({"hours": "1001"}, "at most 7 days"),
        ({"opens_at": ""}, "Enter a time such as"),
        ({"zone": "x" * 65}, "at most 64 characters"),
        ({"hours": "0", "minutes": "1"}, "at least 5 minutes"),
        ({"hours": "200"}, "at most 7 days"),
        ({"on": "fleet"}, "Choose a cluster or a pool"),
        ({"on": "cluster-0"}, "Choose a cluster or a pool"),
    ],
)
def test_what_makes_no_window_is_said_beside_its_field(root, asked, says):
    status, text = send(root, "/windows/new", **{"on": f"cluster-{make.a_fleet().pk}", **NIGHTS, **asked})

    assert status == 400
    assert says in text
    assert not MaintenanceWindow.objects.exists()


def test_it_is_removed_with_a_reason(root):
    window = make.a_window(make.a_fleet("north"))

    _, refused = send(root, f"/windows/{window.pk}/removals")
    _, done = send(root, f"/windows/{window.pk}/removals", reason="24/7 now.")

    assert "Give a reason" in refused
    assert "Removed: the window of cluster north no longer binds plans." in done
    assert "No maintenance windows." in done


def test_who_may_not():
    """Neither who only looks, nor an operator: a window that they add would open the cluster for their own plan."""
    window = make.a_window(make.a_fleet())
    on = f"cluster-{window.cluster_id}"

    for name, role in (("bob", "viewer"), ("ada", "operator")):
        client = visiting(make.a_user(name, role=role))
        assert "you need the role" in send(client, f"/windows/{window.pk}/removals", reason="x")[1]
        assert "you need the role" in send(client, "/windows/new", on=on, seen=look(on), **NIGHTS)[1]
    eve = visiting(make.a_user("eve"))
    eve.post(f"/windows/{window.pk}/removals", {"reason": "x"})
    assert MaintenanceWindow.objects.count() == 1


def test_what_was_written_to_remove_one_is_said_beside_the_refusal():
    window = make.a_window(make.a_cluster("north"))
    client = visiting(make.a_user("ada", role="operator"))

    _, refused = send(client, f"/windows/{window.pk}/removals", reason="24/7 now.")

    assert "Your text was not saved: 24/7 now." in refused


def test_the_pages_of_a_cluster_and_a_pool_say_what_binds_them(root):
    cluster = make.a_fleet("north")
    pool, other = cluster.pools.get(), make.a_pool(cluster, "other")
    make.a_window(cluster)
    make.a_window(cluster, pool=other, opens_at="05:00")
    fleet_freezes.freeze(Where(cluster, pool), actor="ada", reason="quarter end", now=NOON)

    on_cluster, on_pool = (page(root, path).text for path in (f"/clusters/{cluster.pk}", f"/pools/{pool.pk}"))

    assert "Pool north/h200 is frozen by ada: quarter end." in on_cluster
    assert "Pool north/h200 is frozen by ada: quarter end." in on_pool
    assert "of cluster north, 02:00 UTC for 2 h: closed, opens in 14 h" in on_pool
    assert "pool north/other" in on_cluster
    assert "pool north/other" not in on_pool


def test_what_people_wrote_is_only_text(root):
    make.a_window(make.a_fleet(), reason=HOSTILE)

    assert HOSTILE not in root.get("/freezes").content.decode()
    page(root, "/freezes")


def test_the_number_of_queries_does_not_grow(root, queries_of):
    cluster = make.a_fleet()
    make.a_window(cluster)
    few = queries_of(root, "/freezes"), queries_of(root, f"/clusters/{cluster.pk}")

    for _ in range(3):
        make.a_window(cluster)

    assert (queries_of(root, "/freezes"), queries_of(root, f"/clusters/{cluster.pk}")) == few
