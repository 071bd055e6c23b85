from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.messages import wake
from fleet.models import DeviceClass, Observer, OperatorConfig, ResourceClaim, ResourceQuota
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting, wrong_beside

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="viewer"))


def a_stack(cluster, *, operator="26.7.0", **given):
    """A ClusterPolicy of an operator, and one node as the matrix likes it."""
    make.a_bookmark(cluster, "clusterpolicies.nvidia.com")
    return make.a_driver_object(
        cluster, "cluster-policy", kind="ClusterPolicy", operator_version=operator, version="595.91.07", **given
    )


def a_good_node(cluster, **given):
    row = {
        "os_image": "Ubuntu 24.04.2 LTS",
        "container_runtime": "containerd://2.3.1",
        "driver_version": "595.91.07",
        "gpu_vendor": "nvidia",
    }
    return make.a_node(cluster, **row | given)


def watched(cluster, **given):
    row = {"epoch": 7, "owner": "worker-1", "lease_until": NOON + timedelta(seconds=20), "batch": 12, "batch_at": NOON}
    return Observer.objects.create(cluster=cluster, **row | given)


def test_says_who_watches_it_and_how_far_behind_that_is(viewer):
    cluster = make.a_cluster("east", server_version="v1.36.4")
    watched(cluster, lag_ms=140)

    seen = page(viewer, f"/clusters/{cluster.pk}")

    assert "watched epoch 7 by worker-1" in seen.text
    assert "140 ms" in seen.text
    assert "v1.36.4" in seen.text
    assert "uid-of-east" in seen.text


def test_a_worker_that_cannot_keep_up_is_said(viewer):
    cluster = make.a_cluster("east")
    watched(cluster, lag_ms=8200, behind_since=NOON - timedelta(minutes=1), clock_skew_s=-42.0)

    seen = page(viewer, f"/clusters/{cluster.pk}")

    assert "cannot keep up with east" in seen.text
    assert "clock is 42 s behind ours" in seen.text


def test_a_lease_that_ran_out_is_said(viewer):
    cluster = make.a_cluster()
    watched(cluster, lease_until=NOON - timedelta(minutes=5))

    assert "No worker watches the cluster since 2026-11-21 11:55:00 UTC" in page(viewer, f"/clusters/{cluster.pk}").text


def test_only_admins_see_how_it_is_reached(viewer):
    cluster = make.a_cluster("east")
    admin = visiting(make.a_user(role="admin"))

    assert "/etc/quarterdeck/kubeconfig" not in page(viewer, f"/clusters/{cluster.pk}").text
    assert "/etc/quarterdeck/kubeconfig , context east" in page(admin, f"/clusters/{cluster.pk}").text


def test_a_stranger_gets_nothing_and_one_of_a_pool_only_what_is_of_it():
    cluster = make.a_cluster("east")
    pool = make.a_pool(cluster, "h200")
    a_stack(cluster)
    make.an_operand(cluster)
    a_good_node(cluster, pool=pool)
    a_good_node(cluster)

    page(visiting(make.a_user()), f"/clusters/{cluster.pk}", status=404)
    seen = page(visiting(make.a_user(role="viewer", on=pool)), f"/clusters/{cluster.pk}")

    assert "1 GPU node 8 GPUs" in seen.text
    assert "are shown to those who see the whole cluster" in seen.text
    assert "nvidia-driver-daemonset" not in seen.text


def test_a_kind_that_may_not_be_read_names_the_rule(viewer):
    cluster = make.a_cluster()
    make.a_bookmark(cluster, "resourceclaims.resource.k8s.io", state="forbidden", last_seen_at=None)
    make.a_bookmark(cluster, "gpuclusters.nvidia.com", state="absent", last_seen_at=None)

    seen = page(viewer, f"/clusters/{cluster.pk}")

    assert '- apiGroups: ["resource.k8s.io"] resources: [resourceclaims] verbs: [get, list, watch]' in seen.text
    assert "Add these rules to its ClusterRole" not in seen.text
    assert "not installed" in seen.text


def test_rules_for_several_kinds_can_be_taken_at_once(viewer):
    cluster = make.a_cluster()
    for kind in ("resourceclaims.resource.k8s.io", "events", "deviceclasses.resource.k8s.io"):
        make.a_bookmark(cluster, kind, state="forbidden", last_seen_at=None)

    seen = page(viewer, f"/clusters/{cluster.pk}")

    assert "Add these rules to its ClusterRole" in seen.text
    assert '["resource.k8s.io"] resources: [resourceclaims, deviceclasses] verbs' in seen.text


def test_counts_the_rows_that_are_held_of_each_kind(viewer):
    cluster = make.a_cluster()
    a_stack(cluster)
    for _ in range(3):
        a_good_node(cluster)
    a_good_node(make.a_cluster("other"))

    text = page(viewer, f"/clusters/{cluster.pk}").text

    assert "Nodes ● fresh 3" in text or "Nodes fresh 3" in text
    assert "ClusterPolicies fresh 1" in text
    assert "Pods fresh 0" in text


def test_objects_that_could_not_be_read_are_named(viewer):
    cluster = make.a_cluster(seen_at=None)
    make.a_bookmark(cluster, "nodes", unread={"u1": {"name": "gpu-7", "reason": "labels are no map"}})

    seen = page(viewer, f"/clusters/{cluster.pk}")

    assert "1 object cannot be read and is shown in its last state, if any: gpu-7: labels are no map" in seen.text


def test_another_cluster_in_its_place_says_what_to_do(viewer):
    cluster = make.a_cluster("east", foreign_uid="uid-of-somebody")

    seen = page(viewer, f"/clusters/{cluster.pk}")

    assert "Another cluster answers at this address." in seen.text
    assert "bin/manage accept_cluster east --uid uid-of-somebody" in seen.text


def test_the_fleet_page_leads_to_what_needs_somebody(viewer):
    cluster = make.a_cluster("east", foreign_uid="uid-of-somebody")
    watched(cluster, behind_since=NOON - timedelta(minutes=1))
    make.a_bookmark(cluster, "events", state="forbidden", last_seen_at=None)

    seen = page(viewer, "/parts/fleet/clusters")

    assert "Another cluster answers at this address." in seen.text
    assert "Behind since 11:59:00" in seen.text
    assert "Events not permitted" in seen.text
    assert f"/clusters/{cluster.pk}" in seen.links


def test_a_cluster_whose_worker_died_is_not_called_behind(viewer):
    cluster = make.a_cluster("east")
    since = NOON - timedelta(minutes=9)
    watched(cluster, behind_since=since, lease_until=NOON - timedelta(minutes=5))

    fleet, rest = page(viewer, "/parts/fleet/clusters"), viewer.get(f"/api/v1/clusters/{cluster.pk}")

    assert "Behind since" not in fleet.text
    assert rest.json()["observer"]["behind_since"] is None


def test_an_admin_accepts_a_cluster_that_was_rebuilt_and_says_why():
    cluster = make.a_cluster("east", foreign_uid="uid-of-somebody")
    watched(cluster)
    admin = visiting(make.a_user(role="admin"))

    answer = admin.post(f"/clusters/{cluster.pk}/accept", {"uid": "uid-of-somebody", "reason": "Reinstalled."})

    assert answer.headers["Location"] == f"/clusters/{cluster.pk}"
    assert "is now the cluster uid-of-somebody" in page(admin, f"/clusters/{cluster.pk}").text
    cluster.refresh_from_db()
    assert (cluster.uid, cluster.foreign_uid) == ("uid-of-somebody", "")


@pytest.mark.parametrize(
    ("role", "given", "reason"),
    [
        ("viewer", {"uid": "uid-of-somebody", "reason": "x"}, "you need the role admin"),
        ("admin", {"uid": "uid-of-somebody", "reason": " "}, "Give a reason"),
        ("admin", {"uid": "uid-of-another", "reason": "x"}, "has the UID uid-of-somebody, not uid-of-another"),
    ],
)
def test_accepting_is_refused_with_the_reason(role, given, reason):
    cluster = make.a_cluster("east", foreign_uid="uid-of-somebody")
    person = visiting(make.a_user(role=role))

    person.post(f"/clusters/{cluster.pk}/accept", given)

    assert reason in page(person, f"/clusters/{cluster.pk}").text
    cluster.refresh_from_db()
    assert cluster.uid == "uid-of-east"


def test_what_was_written_to_accept_one_that_somebody_else_accepted_is_said_once():
    cluster = make.a_cluster("east")
    admin = visiting(make.a_user(role="admin"))

    admin.post(f"/clusters/{cluster.pk}/accept", {"uid": "uid-of-somebody", "reason": "Reinstalled <all>."})
    refused, again = (page(admin, f"/clusters/{cluster.pk}").text for _ in range(2))

    assert "Your text was not saved: Reinstalled <all>." in refused
    assert "not saved." not in again


def test_what_is_wrong_with_a_rule_of_approval_stands_beside_it():
    cluster = make.a_cluster("east")
    admin = visiting(make.a_user(role="admin"))

    asked = {"approval": "maybe", "reason": " "}
    html = admin.post(f"/clusters/{cluster.pk}/approval", asked, follow=True).content.decode()

    assert wrong_beside(html, "approval-rule") == "Choose required or none."
    assert wrong_beside(html, "reason-approval").startswith("Give a reason")
    cluster.refresh_from_db()
    assert cluster.approval == "required"


def test_what_is_known_to_fail_comes_first_with_the_nodes_it_is_about(viewer):
    cluster = make.a_cluster(server_version="v1.36.4")
    a_stack(cluster)
    for number in range(3):
        a_good_node(cluster, driver_version="570.158.01" if number else "595.91.07", mig_strategy="mixed")

    text = page(viewer, f"/clusters/{cluster.pk}").text

    assert "known to fail Mixed MIG on R570" in text
    assert (
        "Go to driver 570.172.08 or newer; kubelets that hit it may need a restart. 2 nodes release-notes.rst"
    ) in text
    assert (
        text.index("known to fail") < text.index("not supported") < text.index("is in the range that NVIDIA validated")
    )


def test_a_cluster_that_is_all_right_says_so(viewer):
    cluster = make.a_cluster(server_version="v1.36.4")
    a_stack(cluster)
    a_good_node(cluster)

    seen = page(viewer, f"/clusters/{cluster.pk}")

    assert "All compared versions are validated by NVIDIA and still receive fixes." in seen.text
    assert "ClusterPolicy: one driver for all nodes" in seen.text
    assert "GPU Operator 26.7.0, read from labels of ClusterPolicy cluster-policy." in seen.text


def test_an_operator_newer_than_the_matrix_says_that_the_matrix_is_old(viewer):
    cluster = make.a_cluster(server_version="v1.36.4")
    a_stack(cluster, operator="v27.1.0")

    assert "newer releases are missing" in page(viewer, f"/clusters/{cluster.pk}").text


def test_operands_say_how_far_they_have_rolled_out(viewer):
    cluster = make.a_cluster()
    image = "nvcr.io/nvidia/driver:595.91.07-ubuntu24.04"
    make.an_operand(cluster, desired=8, ready=7, updated=3, image=image, owner_kind="NVIDIADriver", owner_name="h200")

    text = page(viewer, f"/clusters/{cluster.pk}").text

    assert "1 not ready 7/8 3/8 595.91.07-ubuntu24.04 NVIDIADriver h200" in text


def test_what_of_the_stack_was_seen_a_while_ago_is_no_alarm_of_now(viewer):
    """Findings and plans say none of it then, and the page of the same cluster did."""
    cluster = make.a_cluster()
    for kind in ("deployments.apps", "resourceclaims.resource.k8s.io", "resourcequotas", "configmaps:mig"):
        make.a_bookmark(cluster, kind, state="forbidden", last_seen_at=NOON - timedelta(minutes=20))
    make.an_operator(cluster, ready=0)
    row = {"cluster": cluster, "namespace": "team-a", "name": "a", "changed_at": NOON}
    ResourceClaim.objects.create(uid="claim", created_at=NOON, **row)
    full = {"requests.nvidia.com/gpu": "2"}
    ResourceQuota.objects.create(uid="quota", hard=full, used=full, **row)
    OperatorConfig.objects.create(uid="config", purpose="mig", entries={"one": "- devices: all"}, **row)
    make.a_node(cluster, mig_config="another")
    make.counted()

    seen, html = page(viewer, f"/clusters/{cluster.pk}"), viewer.get(f"/clusters/{cluster.pk}").content.decode()

    assert "As of 11:40:00 : The GPU operator does not run" in seen.text
    assert "1 claim: 0 allocated, 1 waiting, as of 11:40:00" in seen.text
    assert "Quotas and limits on GPUs as of 11:40:00" in seen.text
    assert "picked, and not in the ConfigMap as it was read" in seen.text
    assert "used up" not in html
    assert '<span class="is-warn">1 waiting' not in html


def test_dra_that_may_not_be_read_is_not_none(viewer):
    cluster = make.a_cluster()
    for kind in ("resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io"):
        make.a_bookmark(cluster, kind, state="forbidden", listed_at=None)
    make.a_bookmark(cluster, "deviceclasses.resource.k8s.io")
    DeviceClass.objects.create(cluster=cluster, uid="c", name="gpu.nvidia.com", changed_at=NOON)

    seen = page(viewer, f"/clusters/{cluster.pk}")

    assert "Dynamic Resource Allocation ResourceClaims were never read here" in seen.text
    assert "Which driver offers devices is not known: ResourceSlices were never read here." in seen.text
    assert "0 claims" not in seen.text


def test_an_empty_cluster_says_that_it_is_empty_and_not_that_all_is_well(viewer):
    cluster = make.a_cluster(seen_at=None)

    seen = page(viewer, f"/clusters/{cluster.pk}")

    assert "No worker observes the cluster yet." in seen.text
    assert "No data yet." in seen.text
    assert "The version of the GPU Operator is unknown, so nothing can be compared with the matrix" in seen.text
    assert "All compared versions" not in seen.text


def test_hostile_names_stay_text(viewer):
    cluster = make.a_cluster(foreign_uid=HOSTILE[:60])
    a_stack(cluster, message=HOSTILE, owned_by=[HOSTILE])
    make.an_operand(cluster, name=HOSTILE, image=HOSTILE, uid="hostile")
    a_good_node(cluster, os_image=HOSTILE[:100], container_runtime=HOSTILE[:100], driver_version=HOSTILE[:60])
    make.a_bookmark(
        cluster, "events", state="failing", message=HOSTILE, unread={"u": {"name": HOSTILE, "reason": HOSTILE}}
    )

    page(viewer, f"/clusters/{cluster.pk}")


def test_what_it_costs_does_not_grow(viewer, queries_of):
    cluster = make.a_cluster()
    a_stack(cluster)
    a_good_node(cluster, pool=make.a_pool(cluster))
    few = queries_of(viewer, f"/parts/clusters/{cluster.pk}")
    for number in range(5):
        a_good_node(cluster, pool=make.a_pool(cluster), driver_version=f"580.{number}")
        make.an_operand(cluster, name=f"more-{number}")
        make.a_bookmark(cluster, f"kind-{number}")

    assert queries_of(viewer, f"/parts/clusters/{cluster.pk}") == few
    assert few <= 41


def test_the_page_reads_its_cluster_and_what_is_counted_of_it_once(viewer):
    cluster = make.a_cluster()
    a_good_node(cluster, pool=make.a_pool(cluster))

    with CaptureQueriesContext(connection) as queries:
        viewer.get(f"/clusters/{cluster.pk}")

    asked = [each["sql"] for each in queries]
    marks = [sql for sql in asked if sql.startswith('SELECT "fleet_bookmark"."id"')]
    marks = [sql for sql in marks if '"kind"' not in sql.partition(" WHERE ")[2]]
    sums = [sql for sql in asked if sql.startswith('SELECT "fleet_nodesums".')]
    assert (len(marks), len(sums)) == (1, 1)


def test_the_part_is_not_sent_again_while_nothing_changes(viewer):
    cluster = make.a_cluster()
    path = f"/parts/clusters/{cluster.pk}"

    etag = viewer.get(path)["ETag"]

    assert viewer.get(path, headers={"If-None-Match": etag}).status_code == 304


def a_dead_cluster(**given):
    """Its kinds failed 20 s ago; what was heard of it is no older than half a minute."""
    cluster = make.a_cluster(seen_at=None)
    row = {
        "last_seen_at": NOON - timedelta(seconds=30),
        "state": "failing",
        "state_since": NOON - timedelta(seconds=20),
    }
    for kind in ("nodes", "pods", "daemonsets.apps"):
        make.a_bookmark(cluster, kind, message="Connection refused.", **row | given)
    Observer.objects.create(cluster=cluster, epoch=4, lease_until=NOON)
    return cluster


def test_no_page_calls_a_cluster_live_whose_kinds_fail(viewer):
    cluster = a_dead_cluster()
    node = make.a_node(cluster)
    make.an_operand(cluster, desired=1, ready=1, updated=1)

    text = page(viewer, f"/clusters/{cluster.pk}").text
    row = viewer.get("/api/v1/clusters").json()["results"][0]

    assert "failing, noticed at 11:59:40" in text
    assert "rolled out, as of 11:59:30" in text
    assert "Last observed at 11:59:30 UTC, noticed at 11:59:40 UTC. Connection refused." in text
    for address in ("/", f"/nodes/{node.pk}"):
        shown = page(viewer, address).text
        assert "failing, noticed at 11:59:40" in shown
        assert "was ready" in shown
    assert (row["observation"]["state"], row["observation"]["last_seen_at"]) == ("failing", "2026-11-21T11:59:30Z")


def test_a_cluster_that_was_never_reached_has_no_nodes_instead_of_0(viewer):
    cluster = a_dead_cluster(last_seen_at=None)

    for address in ("/", f"/clusters/{cluster.pk}"):
        text = page(viewer, address).text
        assert "never reached" in text
        assert "The cluster was never reached, since 11:59:40 UTC. Connection refused." in text
        assert "bin/manage doctor" in text
        assert "no node data" in text
        assert "0 GPU nodes" not in text.replace("0 GPU nodes 0 with faults", "")


def test_who_may_stop_plans_may_have_a_cluster_asked_at_once(monkeypatch):
    offered = []
    monkeypatch.setattr(wake, "wake_observer", lambda *turn: offered.append(turn))
    cluster = a_dead_cluster()
    late = NOON + timedelta(minutes=5)
    Observer.objects.update(failures=9, next_look_at=late)
    viewer, operator = visiting(make.a_user(role="viewer")), visiting(make.a_user(role="operator"))

    way = f'action="/clusters/{cluster.pk}/try"'

    assert way not in viewer.get(f"/clusters/{cluster.pk}").content.decode()
    viewer.post(f"/clusters/{cluster.pk}/try")
    assert viewer.post(f"/api/v1/clusters/{cluster.pk}/attempts").status_code == 403
    assert Observer.objects.get().next_look_at == late

    assert way in operator.get(f"/clusters/{cluster.pk}").content.decode()
    operator.post(f"/clusters/{cluster.pk}/try")
    assert (Observer.objects.get().next_look_at, offered) == (None, [(cluster.pk, 4)])
    assert operator.post(f"/api/v1/clusters/{cluster.pk}/attempts").status_code == 204
