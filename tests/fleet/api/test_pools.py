import pytest

from fleet.api import pools
from fleet.models import Pool
from people.models import AuditEntry, RoleBinding
from tests.callers import calling
from tests.make import a_cluster, a_draft, a_fleet, a_node, a_pool, a_user

SELECTOR = "nvidia.com/gpu.product=NVIDIA-H200"


def post(client, path: str, **asked):
    return client.post(f"/api/v1/{path}", asked, format="json")


def patch(client, pool, **asked):
    return client.patch(f"/api/v1/pools/{pool.pk}", asked, format="json")


def test_a_new_pool_has_its_nodes_at_once(root):
    cluster = a_cluster()
    a_node(cluster)
    a_node(cluster, labels={"nvidia.com/gpu.product": "NVIDIA-A100"})

    reply = post(root, "pools", cluster=cluster.pk, name="h200", selector=SELECTOR, price_per_gpu_hour="2.5")

    assert reply.status_code == 201, reply.json()
    assert reply.json()["counts"]["nodes"] == 1
    assert reply.json()["price_per_gpu_hour"] == "2.5000"
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.actor, entry.evidence["selector"]) == ("pool.create", "root", SELECTOR)


def test_a_new_selector_moves_nodes_and_keeps_what_it_was(root):
    cluster = a_cluster()
    pool = a_pool(cluster)
    node = a_node(cluster, pool=pool)
    other = a_node(cluster, labels={"zone": "b"})

    reply = patch(root, pool, selector="zone=b")

    assert reply.status_code == 200
    assert list(pool.nodes.all()) == [other]
    assert node.pools.count() == 0
    assert AuditEntry.objects.get().evidence["before"] == {"selector": SELECTOR}


def test_changing_something_else_leaves_its_nodes_alone(root):
    pool = a_pool(a_cluster(), selector="zone=nowhere")
    a_node(pool.cluster, pool=pool)

    patch(root, pool, max_unavailable=3, price_per_gpu_hour=None)

    pool.refresh_from_db()
    assert (pool.max_unavailable, pool.nodes.count()) == (3, 1)


def test_a_preview_knows_no_number_where_nobody_says_one(root):
    cluster = a_cluster()
    a_node(cluster, gpus=0)
    a_node(cluster, gpus=0, is_gpu_node=False)

    said = post(root, "pool-previews", cluster=cluster.pk, selector=SELECTOR).json()

    assert (said["count"], said["gpus"], said["uncounted_nodes"]) == (2, None, 1)


def test_a_preview_changes_nothing(root):
    cluster = a_cluster()
    node = a_node(cluster)

    reply = post(root, "pool-previews", cluster=cluster.pk, selector=SELECTOR)

    assert reply.json() == {
        "count": 1,
        "gpus": 8,
        "uncounted_nodes": 0,
        "entering": 1,
        "leaving": 0,
        "enters": [{"id": node.pk, "name": node.name}],
        "leaves": [],
        "unpooled": 0,
        "overlaps": [],
    }
    assert Pool.objects.count() == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("selector", "zone in a,b"),
        ("selector", ""),
        ("name", "two words"),
        ("max_unavailable", 0),
        ("price_per_gpu_hour", -1),
        ("workload_class", "mining"),
        ("cluster", "east"),
    ],
)
def test_what_cannot_be_a_pool_is_refused(root, field, value):
    asked = {"cluster": a_cluster().pk, "name": "h200", "selector": SELECTOR, field: value}

    reply = post(root, "pools", **asked)

    assert reply.status_code == 400
    assert reply.json()["errors"][0]["field"] == field
    assert Pool.objects.count() == 0


def test_a_name_is_taken_once_in_a_cluster(root):
    cluster = a_cluster("east")
    a_pool(cluster, "h200")
    asked = {"name": "h200", "selector": SELECTOR}

    taken = post(root, "pools", cluster=cluster.pk, **asked)

    assert taken.status_code == 409
    assert taken.json()["detail"] == "Cluster east already has a pool h200."
    assert patch(root, a_pool(cluster), name="h200").status_code == 409
    assert post(root, "pools", cluster=a_cluster().pk, **asked).status_code == 201


def test_a_deleted_pool_ends_the_roles_on_it(root):
    pool = a_pool(a_cluster())
    a_user(role="viewer", on=pool)

    assert root.delete(f"/api/v1/pools/{pool.pk}").status_code == 204
    assert not RoleBinding.objects.filter(scope="pool").exists()
    taken = AuditEntry.objects.get(verb="role.take")
    assert (taken.actor, taken.evidence["role"], taken.evidence["on"]) == (
        "root",
        "viewer",
        f"{pool.cluster.name}/{pool.name}",
    )
    assert not Pool.objects.exists()


def test_a_pool_with_a_history_stays(root):
    pool = a_draft(a_fleet()).cluster.pools.get()
    a_user(role="viewer", on=pool)

    reply = root.delete(f"/api/v1/pools/{pool.pk}")

    assert reply.status_code == 409
    assert RoleBinding.objects.filter(scope="pool").exists()
    assert not AuditEntry.objects.filter(verb="pool.delete").exists()


@pytest.mark.parametrize("act", ["change_pool", "delete_pool"])
def test_a_pool_that_goes_meanwhile_is_a_conflict(root, monkeypatch, act):
    pool, truly = a_pool(a_cluster(), "h200"), getattr(pools, act)

    def late(found, **given):
        Pool.objects.filter(pk=pool.pk).delete()
        return truly(found, **given)

    monkeypatch.setattr(pools, act, late)
    path = f"/api/v1/pools/{pool.pk}"
    reply = root.delete(path) if act == "delete_pool" else root.patch(path, {"max_unavailable": 2}, format="json")

    assert (reply.status_code, reply.json()["type"]) == (409, "urn:quarterdeck:problem:pool-gone")
    assert reply.json()["detail"] == "Somebody has deleted pool h200 since you read it."


@pytest.mark.parametrize("number", [1, 5])
def test_a_list_costs_the_same_queries_whatever_its_length(bob, number, django_assert_num_queries):
    for _ in range(number):
        cluster = a_cluster()
        a_node(cluster, pool=a_pool(cluster))

    with django_assert_num_queries(8):
        rows = bob.get("/api/v1/pools").json()["results"]

    assert [row["counts"]["nodes"] for row in rows] == [1] * number


@pytest.mark.parametrize("method", ["post", "patch", "delete", "preview"])
def test_who_may_change_pools(method, nobody, eve, bob, ada, now, db):
    pool = a_pool(a_cluster("east"))
    admin_elsewhere = a_user(role="admin", on=a_cluster("west"))
    calls = {
        "post": lambda caller: post(caller, "pools", cluster=pool.cluster_id, name="x", selector=SELECTOR),
        "patch": lambda caller: patch(caller, pool, name="x"),
        "delete": lambda caller: caller.delete(f"/api/v1/pools/{pool.pk}"),
        "preview": lambda caller: post(caller, "pool-previews", cluster=pool.cluster_id, selector=SELECTOR),
    }
    call = calls[method]

    assert call(nobody).status_code == 401
    assert call(eve).status_code == call(calling(admin_elsewhere)).status_code == 404
    for caller in (bob, ada):
        refused = call(caller)
        assert refused.status_code == 403
        assert refused.json()["detail"] == (
            "To change clusters, pools or people you need the role admin on cluster east."
        )
    assert list(Pool.objects.values_list("name", flat=True)) == [pool.name]


def test_who_may_see_a_pool(nobody, eve, bob):
    place = f"/api/v1/pools/{a_pool(a_cluster()).pk}"

    assert [caller.get(place).status_code for caller in (nobody, eve, bob)] == [401, 404, 200]


def test_pools_are_suggested(bob):
    cluster = a_cluster()
    pool = a_pool(cluster, "h200")
    a_node(cluster, pool=pool)
    a_node(cluster)

    (found,) = bob.get(f"/api/v1/clusters/{cluster.pk}/pool-suggestions").json()

    assert (found["name"], found["selector"], found["nodes"], found["unpooled"]) == ("h200", SELECTOR, 2, 1)
    assert found["pools"] == [{"id": pool.pk, "name": "h200"}]
