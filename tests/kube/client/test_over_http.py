"""What we say to an API server, and what we make of its answers, over real HTTP."""

import socket
import threading
import time
from itertools import count

import httpx
import pytest

from kube import client
from kube.client.lists import list_pages
from kube.resources import CONFIG_MAPS, NODES
from tests.fleet.documents import node_document
from tests.make import NOON
from tests.patience import PATIENCE_S

HOLD = "nvidia.com/gpu-driver-upgrade.skip"
_next = count(1)


@pytest.fixture
def node(api):
    """The name of a node that only this test knows."""
    name = f"http-{next(_next)}"
    document = node_document(name)
    document["metadata"] = {"name": name, "labels": {"a": "b"}}
    api.create("/api/v1/nodes", document)
    yield name
    api.delete(f"/api/v1/nodes/{name}")


def test_a_cluster_is_known_by_its_kube_system(api, connection):
    expected = api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]

    assert client.kube_system_uid(connection) == expected
    assert client.server_version(connection).startswith("v1.")


def test_a_node_is_held_and_released_by_patches_that_test_what_they_saw(connection, node):
    held = client.patch_node(
        connection, node, client.metadata_patch(client.get_node(connection, node), labels={HOLD: "true"})
    )
    released = client.patch_node(connection, node, client.metadata_patch(held, labels={HOLD: None}))

    assert held.labels[HOLD] == "true"
    assert HOLD not in released.labels


def test_a_foreign_change_makes_our_patch_a_conflict(api, connection, node):
    seen = client.get_node(connection, node)
    api.change(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"a": "changed"}}})

    with pytest.raises(client.Conflict):
        client.patch_node(connection, node, client.metadata_patch(seen, labels={"a": None}))
    with pytest.raises(client.Conflict):
        client.patch_node(
            connection, node, client.metadata_patch(seen, annotations={"quarterdeck.io/held-by": "plan-1"})
        )

    assert client.get_node(connection, node).labels["a"] == "changed"


def test_a_node_that_came_back_under_its_name_is_another(api, connection, node):
    seen = client.get_node(connection, node)
    api.delete(f"/api/v1/nodes/{node}")
    api.create("/api/v1/nodes", {"metadata": {"name": node, "labels": {"a": "b"}}})

    with pytest.raises(client.Conflict):
        client.patch_node(connection, node, client.metadata_patch(seen, labels={"a": None}))


def test_every_write_names_us(api, connection, node):
    client.patch_node(connection, node, client.metadata_patch(client.get_node(connection, node), labels={"x": "1"}))

    write = [asked for asked in api.requests() if asked["method"] == "PATCH"][-1]
    assert write["user_agent"].startswith("quarterdeck/")
    assert "fieldManager=quarterdeck" in str(write["query"])


def test_a_label_that_no_server_takes_is_refused_and_no_conflict(connection, node):
    seen = client.get_node(connection, node)

    with pytest.raises(client.Refused):
        client.patch_node(connection, node, client.metadata_patch(seen, labels={"x": "not a label!"}))


def test_what_is_not_there_is_none_or_absent(connection):
    assert client.get_config_map(connection, "default", "nothing") is None
    assert client.get_lease(connection, "default", "nothing") is None
    with pytest.raises(client.Absent):
        client.get_node(connection, "nowhere")


def test_a_lease_is_created_once_and_replaced_by_who_saw_it_last(connection):
    now = client.lease_spec(holder="a", seconds=30, acquired_at=NOON, now=NOON, transitions=0)
    created = client.create_lease(connection, "default", "quarterdeck", now)
    client.replace_lease(connection, created, {**now, "holderIdentity": "b"})

    with pytest.raises(client.Conflict):
        client.create_lease(connection, "default", "quarterdeck", now)
    with pytest.raises(client.Conflict):
        client.replace_lease(connection, created, {**now, "holderIdentity": "c"})
    assert client.get_lease(connection, "default", "quarterdeck").spec.holder_identity == "b"


def test_a_list_comes_in_pages_of_one_picture(api, connection):
    for number in range(5):
        api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"page-{number}"}})

    pages = list(list_pages(connection, CONFIG_MAPS, namespace="default", limit=2))

    assert [page.is_last for page in pages] == [False] * (len(pages) - 1) + [True]
    assert len({page.resource_version for page in pages}) == 1
    assert {f"page-{number}" for number in range(5)} <= {item.name for page in pages for item in page.items}


def test_a_list_that_was_forgotten_half_way_is_gone(api, connection):
    for number in range(4):
        api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"gone-{number}"}})
    pages = list_pages(connection, CONFIG_MAPS, namespace="default", limit=1)
    next(pages)
    api.suffer("expire")

    with pytest.raises(client.Gone):
        list(pages)


def test_a_watch_tells_what_changes_until_it_is_closed(api, connection, node):
    version = list(list_pages(connection, NODES))[-1].resource_version
    watch = client.Watch(connection, NODES, version, seconds=30)
    api.change(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"seen": "yes"}}})

    change = next(iter(watch))
    watch.close()

    assert (change.object.name, change.object.labels["seen"], change.is_removed) == (node, "yes", False)
    assert change.resource_version == change.object.resource_version


def test_closing_a_watch_wakes_up_its_reader(connection):
    version = list(list_pages(connection, NODES))[-1].resource_version
    watch = client.Watch(connection, NODES, version, seconds=3600)
    reader = threading.Thread(target=lambda: list(watch), daemon=True)
    reader.start()
    time.sleep(0.1)

    watch.close()
    reader.join(timeout=PATIENCE_S)

    assert not reader.is_alive()


def test_a_watch_from_a_forgotten_past_is_gone(api, connection, node):
    version = client.get_node(connection, node).resource_version
    api.change(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"later": "yes"}}})
    api.suffer("expire")

    with pytest.raises(client.Gone):
        list(client.Watch(connection, NODES, version, seconds=5))


def test_a_watch_that_is_told_to_start_again_is_gone(api, connection, node):
    version = list(list_pages(connection, NODES))[-1].resource_version
    watch = iter(client.Watch(connection, NODES, version, seconds=30))
    api.suffer("expire")

    with pytest.raises(client.Gone):
        list(watch)


def test_one_connection_serves_many_threads(connection, node):
    found = []
    threads = [threading.Thread(target=lambda: found.append(client.get_node(connection, node).name)) for _ in range(12)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [node] * 12


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        ("http://127.0.0.1:1", "refused the connection"),
        ("http://no-such-host.invalid:6443", "cannot be resolved"),
        ("kube://somewhere", "has an invalid address"),
    ],
)
def test_says_why_nobody_answers(tmp_path, server, sentence):
    """And where, to who has a shell: whoever sees a pool of the cluster reads the sentence."""
    connection = client.connect(a_kubeconfig(tmp_path, server), "c")

    with pytest.raises(client.Unreachable, match=sentence) as refusal:
        client.server_version(connection)

    assert server.partition("//")[2] not in str(refusal.value)
    assert refusal.value.in_full == str(refusal.value).replace("The API server", server)


def test_a_server_that_does_not_speak_tls_is_told_from_one_we_do_not_trust(tmp_path, api):
    connection = client.connect(a_kubeconfig(tmp_path, api.url.replace("http://", "https://")), "c")

    with pytest.raises(client.NotAnApiServer, match="does not speak TLS") as refusal:
        client.server_version(connection)

    assert str(refusal.value).startswith("The API server does not")


def test_a_server_that_never_answers_is_given_up(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection = client.connect(a_kubeconfig(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}"), "c")

        with pytest.raises(client.Unreachable, match="did not answer"):
            connection.get("/version", read_s=0.2)


def test_no_request_is_sent_twice(api, connection):
    before = len(api.requests())
    api.suffer("errors", code=500, share=1.0)
    try:
        with pytest.raises(client.ServerFailing):
            client.get_node(connection, "any")
    finally:
        httpx.delete(f"{api.url}/simulator/faults", timeout=PATIENCE_S)

    asked = [one for one in api.requests()[before:] if one["path"] == "/api/v1/nodes/any"]
    assert len(asked) == 1


def a_kubeconfig(folder, server: str) -> str:
    path = folder / "config"
    path.write_text(
        f"clusters: [{{name: a, cluster: {{server: '{server}'}}}}]\n"
        "users: [{name: a, user: {token: t}}]\n"
        "contexts: [{name: c, context: {cluster: a, user: a}}]\n",
    )
    return str(path)
