"""Adding a cluster: every way it can go wrong has its own sentence."""

import http.server
import json
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError, call_command

from fleet.management.commands.add_cluster import kubeconfig_for
from fleet.models import Cluster, ClusterMode, Observer
from fleet.observer.cluster_registration import CannotAdd, Introduction, add, ask
from kube import client
from tests.api_server import ApiServer, an_api_server
from tests.make import NOON


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server that asks who we are and what we may."""
    with an_api_server(tmp_path_factory.mktemp("guarded"), "--authorization", "rbac") as server:
        yield server


@pytest.fixture(scope="module")
def web_page() -> Iterator[str]:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>Welcome</html>")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def a_kubeconfig(folder, server: str, *, known_by: str = "t", more: str = "") -> str:
    path = folder / "config"
    path.write_text(
        f"clusters: [{{name: a, cluster: {{server: '{server}'{more}}}}}]\n"
        f"users: [{{name: a, user: {{token: '{known_by}'}}}}]\n"
        "contexts: [{name: c, context: {cluster: a, user: a}}]\n",
    )
    return str(path)


def test_a_cluster_says_who_it_is(api):
    found = ask(api.kubeconfig, api.context)

    assert found.uid == client.kube_system_uid(client.connect(api.kubeconfig, api.context))
    assert any("nvidiadrivers.nvidia.com is not installed" in note for note in found.notes)


@pytest.mark.parametrize(
    ("server", "sentence"),
    [("http://127.0.0.1:1", "refused the connection"), ("http://nobody.invalid", "cannot be resolved")],
)
def test_says_why_it_cannot_be_reached(tmp_path, server, sentence):
    with pytest.raises(CannotAdd, match=f"^{server} .*{sentence}"):
        ask(a_kubeconfig(tmp_path, server), "c")


def test_says_that_it_is_no_kubernetes(tmp_path, web_page):
    with pytest.raises(CannotAdd, match="is not a Kubernetes API server"):
        ask(a_kubeconfig(tmp_path, web_page), "c")


def test_says_that_the_certificate_is_not_trusted(tmp_path, guarded):
    with pytest.raises(CannotAdd, match="is not trusted"):
        ask(a_kubeconfig(tmp_path, guarded.url), "c")


def test_says_that_the_credentials_are_not_accepted(tmp_path, guarded):
    path = a_kubeconfig(tmp_path, guarded.url, known_by="old", more=", insecure-skip-tls-verify: true")

    with pytest.raises(CannotAdd, match="does not accept the credentials of context “c”"):
        ask(path, "c")


def test_an_unverified_certificate_is_a_note_and_not_a_warning_for_each_request(tmp_path, guarded):
    given = yaml.safe_load(Path(guarded.kubeconfig).read_text())
    user = next(one["context"]["user"] for one in given["contexts"] if one["name"] == guarded.context)
    token = next(one["user"]["token"] for one in given["users"] if one["name"] == user)
    path = a_kubeconfig(tmp_path, guarded.url, known_by=token, more=", insecure-skip-tls-verify: true")

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        found = ask(path, "c")

    assert [one for one in found.notes if "certificate is not verified" in one] == [found.notes[0]]
    assert [str(one.message) for one in shown if "Unverified HTTPS" in str(one.message)] == []
    assert not any("not verified" in note for note in ask(guarded.kubeconfig, guarded.context).notes)


def test_names_every_rule_that_is_missing(guarded):
    with pytest.raises(CannotAdd) as refusal:
        ask(guarded.kubeconfig, "quarterdeck-rbac")

    for rule in ("nodes", "pods", "daemonsets.apps", "controllerrevisions.apps", "get on namespaces"):
        assert rule in str(refusal.value)


@pytest.mark.django_db
def test_adding_the_same_cluster_again_brings_it_up_to_date(api, capsys):
    call_command("add_cluster", "north", "--context", api.context, "--kubeconfig", api.kubeconfig, "--mode", "operate")
    call_command("add_cluster", "north", "--context", api.context, "--kubeconfig", api.kubeconfig)

    cluster = Cluster.objects.get()
    assert (cluster.mode, cluster.server_version[:3]) == ("operate", "v1.")
    assert Observer.objects.filter(cluster=cluster).exists()
    assert "is up to date" in capsys.readouterr().out


@pytest.mark.django_db
def test_one_cluster_has_one_name_and_one_name_one_cluster(api):
    call_command("add_cluster", "north", "--context", api.context, "--kubeconfig", api.kubeconfig)

    with pytest.raises(CommandError, match="already has this cluster as north"):
        call_command("add_cluster", "south", "--context", api.context, "--kubeconfig", api.kubeconfig)
    Cluster.objects.update(uid="another")
    with pytest.raises(CommandError, match="Another cluster has the name north"):
        call_command("add_cluster", "north", "--context", api.context, "--kubeconfig", api.kubeconfig)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["north"], "Give the --context of the kubeconfig, a --cluster-profile, or --in-cluster"),
        (["north", "--in-cluster", "--context", "c"], "has no context"),
        (["north", "--in-cluster"], "Not running in a pod"),
        (["no name", "--context", "c"], "is not a valid name"),
        (["north", "--context", "c", "--kubeconfig", "/"], "/ is a folder. A kubeconfig is a file"),
        (["north", "--kubeconfig", "/"], "It has no file server and no file config"),
        (["north", "--cluster-profile", "fleet/us-1"], "needs --kubeconfig with the file of access providers"),
        (["north", "--cluster-profile", "us-1", "--kubeconfig", "/no"], "clusterprofile:NAMESPACE/NAME"),
        (["north", "--context", "c", "--kubeconfig", "/no/such/file"], "The file /no/such/file does not exist"),
    ],
)
def test_the_command_says_what_is_wrong_with_what_it_was_given(words, sentence):
    with pytest.raises(CommandError, match=sentence):
        call_command("add_cluster", *words)

    assert not Cluster.objects.exists()


def a_file_with(path, *contexts: str):
    path.write_text(json.dumps({"contexts": [{"name": name, "context": {}} for name in contexts]}))
    return path


def test_the_kubeconfig_is_the_one_that_kubectl_would_use(tmp_path, monkeypatch):
    one, other = a_file_with(tmp_path / "one", "dev"), a_file_with(tmp_path / "other", "prod")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{one}:{other}")

    assert kubeconfig_for("prod", named=None) == other
    assert kubeconfig_for("prod", named=str(one)) == one


@pytest.mark.django_db
def test_no_cluster_is_called_as_all_of_them_are():
    """Who gives a role on it would give it on the whole fleet."""
    given = {"kubeconfig": "", "context": "", "mode": None, "now": NOON}

    with pytest.raises(CannotAdd, match="” is the name for all clusters together"):
        add("fleet", introduction=Introduction("uid", "https://127.0.0.1", "v1.34.1", ()), **given)
    assert not Cluster.objects.exists()


@pytest.mark.parametrize(("pod_namespace", "own"), [("gpu-fleet", "gpu-fleet"), ("", "quarterdeck")])
def test_in_our_own_cluster_lease_and_stop_switch_are_in_the_namespace_of_our_pod(db, pod_namespace, own):
    introduction = Introduction("uid", "https://10.0.0.1", "v1.34.1", (), pod_namespace=pod_namespace)

    cluster, _ = add("home", kubeconfig="", context="", mode=None, introduction=introduction, now=NOON)

    assert cluster.own_namespace == own
    assert cluster.mode == ClusterMode.OBSERVE_ONLY
