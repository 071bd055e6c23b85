"""Workloads whose new pods are rejected at creation: on the page of pods and in REST."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark
from health.rules.pods_rejected import PodsRejected
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
PART, REST = "/parts/rejected-workloads", "/api/v1/rejected-workloads"
EVIDENCE = [{"label": "Missing pods", "value": 3, "unit": ""}]


@pytest.fixture
def east():
    cluster = make.a_cluster("east")
    Bookmark.objects.filter(cluster=cluster, kind__in=PodsRejected.reads).delete()
    for kind in PodsRejected.reads:
        make.a_bookmark(cluster, kind)
    return cluster


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


def rejected(cluster, subject="Deployment team-a/chat", **given):
    causes = ["ResourceQuota team-a/gpus is used up."]
    row = {"rule": "pods-rejected", "evidence": EVIDENCE, "causes": causes, "since": NOON - timedelta(hours=2)}
    return make.a_finding(cluster, subject, **row | given)


def test_a_rejected_workload_is_a_line_once_with_its_missing_pods_and_its_finding(east, bob):
    finding = rejected(east)
    rejected(east, "Job team-a/done", resolved_at=NOON)
    make.a_finding(east, rule="other")
    rejected(east, f"Job team-a/{HOSTILE}"[:80], evidence=[], causes=[], summary="The API server says: no.")

    seen, found = page(visiting(bob), PART), calling(bob).get(REST).json()

    assert "2 workloads whose new pods the API server rejects" in seen.text
    assert "Deployment team-a/chat east Rejected 3 ResourceQuota team-a/gpus is used up. Finding 2 h" in seen.text
    assert "The API server says: no." in seen.text
    assert f"/clusters/{east.pk}/workloads/team-a/Deployment/chat" in seen.links
    assert f"/findings?finding={finding.pk}" in seen.links
    assert (found["workloads"], [row["missing_pods"] for row in found["shown"]]) == (2, [3, None])
    assert (found["unread_clusters"], found["hidden_clusters"]) == ([], [])
    assert PART in visiting(bob).get("/pods").content.decode()


def test_none_is_told_apart_from_events_that_are_not_read_and_from_what_a_role_hides(east, bob):
    assert page(visiting(bob), PART).text == "Rejected before they exist none"
    rejected(east)
    eve = make.a_user("eve", role="viewer", on=make.a_pool(east, "h200"))

    assert "Rejected pods are not visible to you in east." in page(visiting(eve), PART).text
    assert "chat" not in page(visiting(eve), PART).text

    Bookmark.objects.filter(kind="replicasets.apps").update(last_seen_at=NOON - timedelta(days=1))

    assert "Not checked now in east: rejected pods are unknown there" in page(visiting(bob), PART).text
