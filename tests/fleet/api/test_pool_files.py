import pytest

from fleet.models import Pool
from people.models import AuditEntry
from tests.callers import calling
from tests.make import a_cluster, a_node, a_pool, a_user

TEXT = "pools:\n- name: h200\n  selector: nvidia.com/gpu.product=NVIDIA-H200\n"


def post(client, cluster, text: str = TEXT, **asked):
    return client.post("/api/v1/pool-files", {"cluster": cluster.pk, "text": text, **asked}, format="json")


def test_a_file_is_only_compared_unless_told_otherwise(root):
    cluster = a_cluster()
    a_node(cluster)

    said = post(root, cluster).json()

    assert not said["is_done"]
    assert [(each["name"], each["what"], each["entering"]) for each in said["changes"]] == [("h200", "created", 1)]
    assert not Pool.objects.exists()


def test_it_is_taken_over_as_it_was_shown(root):
    cluster = a_cluster()
    a_pool(cluster, "gone")
    shown = post(root, cluster, prune=True).json()

    done = post(root, cluster, prune=True, dry_run=False, expected_fingerprint=shown["fingerprint"])

    assert done.json()["is_done"]
    assert [pool.name for pool in Pool.objects.all()] == ["h200"]
    assert {entry.verb for entry in AuditEntry.objects.all()} == {"pool.create", "pool.delete"}
    assert {entry.actor for entry in AuditEntry.objects.all()} == {"root"}


def test_not_if_it_would_do_something_else_by_now(root):
    cluster = a_cluster()
    shown = post(root, cluster).json()
    a_node(cluster)

    reply = post(root, cluster, dry_run=False, expected_fingerprint=shown["fingerprint"])

    assert reply.status_code == 409
    assert not Pool.objects.exists()


def test_bad_entries_are_named_by_their_lines(root):
    reply = post(root, a_cluster(), f"{TEXT}- name: x\n  selektor: a\n", dry_run=False)

    assert reply.status_code == 400
    assert reply.json()["errors"] == [
        {
            "field": "line 5",
            "sentence": (
                "Unknown field “selektor”. Known fields: name, selector, environment, workload_class, "
                "approval, max_unavailable, price_per_gpu_hour, placement_policy, training_placement, "
                "inference_placement, development_placement, spread_label, test_images, test_claim_template, "
                "test_worse_percent."
            ),
        }
    ]
    assert not Pool.objects.exists()


def test_a_file_for_another_cluster_is_refused(root):
    assert post(root, a_cluster("west"), f"cluster: east\n{TEXT}").status_code == 400


@pytest.mark.parametrize("caller", ["bob", "ada"])
def test_who_does_not_administer_the_cluster_takes_nothing_over(request, caller):
    client = request.getfixturevalue(caller)

    assert post(client, a_cluster(), dry_run=False).status_code == 403


def test_what_is_read_back_changes_nothing(root, bob):
    cluster = a_cluster()
    a_pool(cluster, "h200", environment="production", price_per_gpu_hour="2.5")

    text = bob.get(f"/api/v1/clusters/{cluster.pk}/pool-file").json()["text"]

    assert "price_per_gpu_hour: '2.5'" in text
    assert [each["what"] for each in post(root, cluster, text).json()["changes"]] == ["unchanged"]


def test_only_pools_that_may_be_seen_are_in_it(now, db):
    cluster = a_cluster()
    a_pool(cluster, "secret")
    caller = calling(a_user(role="viewer", on=a_pool(cluster, "mine")))

    text = caller.get(f"/api/v1/clusters/{cluster.pk}/pool-file").json()["text"]

    assert "mine" in text
    assert "secret" not in text


def test_the_pools_of_a_cluster_are_for_those_who_see_it(eve):
    assert eve.get(f"/api/v1/clusters/{a_cluster().pk}/pool-file").status_code == 404
