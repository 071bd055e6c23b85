"""Argo CD's cluster Secrets, as the kubelet mounts them, and ClusterProfiles give a connection, or a sentence."""

import base64
import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from kubernetes.config import incluster_config

from kube.client import BadCredentials, connect
from kube.client.cluster_secrets import argo_document, profile_document
from kube.client.errors import BadKubeconfig
from kube.client.kubeconfig import load

CA = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()
PROFILE_PATH = "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/fleet/clusterprofiles/us-1"
# docs/operator-manual/declarative-setup.md of Argo CD
DOCUMENTED = {"bearerToken": "first", "tlsClientConfig": {"insecure": False, "caData": CA}}


class Server(ThreadingHTTPServer):
    """Answers whoever has its token, with the answers of a test."""

    daemon_threads = True
    token = ""
    answers: dict[str, Any]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_known = self.headers["Authorization"].casefold() == f"bearer {self.server.token}"
        answer = self.server.answers.get(self.path)
        self.send_response(401 if not is_known else 404 if answer is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(answer or {"kind": "Status", "reason": "NotFound"}).encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        running.answers = {"/version": {"gitVersion": "v1.34.2"}}
        Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def mount(folder: Path, keys: dict[str, str | dict[str, Any]]) -> Path:
    """Mounts a Secret as the kubelet does: files are links into a folder that is exchanged as a whole."""
    version = folder / f"..{len(list(folder.glob('..*')))}"
    version.mkdir(parents=True)
    for key, value in keys.items():
        (version / key).write_text(value if isinstance(value, str) else json.dumps(value))
        if not (folder / key).is_symlink():
            (folder / key).symlink_to(Path("..data") / key)
    (folder / "..new").symlink_to(version.name)
    (folder / "..new").replace(folder / "..data")
    return folder


def test_a_rotated_secret_is_used_by_the_next_connection(tmp_path, server):
    secret = {"name": "us-1", "server": server.url, "config": {"bearerToken": "first"}}
    folder = mount(tmp_path / "us-1", secret)
    server.token = "first"
    with closing(connect(str(folder), "")) as connection:
        assert b"v1.34.2" in connection.get("/version")

        server.token = "second"
        with pytest.raises(BadCredentials):
            connection.get("/version")
    mount(folder, secret | {"config": {"bearerToken": "second"}})

    with closing(connect(str(folder), "")) as connection:
        assert b"v1.34.2" in connection.get("/version")


def test_the_documented_secret_is_read(tmp_path):
    folder = mount(tmp_path / "us-1", {"name": "us-1", "server": "https://10.0.0.1:6443", "config": DOCUMENTED})

    settings = load(str(folder), "")

    assert settings.host == "https://10.0.0.1:6443"
    assert settings.verify_ssl
    assert Path(settings.ssl_ca_cert).read_text() == "-----BEGIN CERTIFICATE-----"
    assert settings.auth_settings()["BearerToken"]["value"] == "Bearer first"


@pytest.mark.parametrize(
    ("config", "user"),
    [
        ({"username": "ada", "password": "p"}, {"username": "ada", "password": "p"}),
        (
            {"tlsClientConfig": {"certData": "Yw==", "keyData": "aw=="}},
            {"client-certificate-data": "Yw==", "client-key-data": "aw=="},
        ),
        (
            {"awsAuthConfig": {"clusterName": "gpu", "roleARN": "arn:aws:iam::1:role/r"}},
            {
                "exec": {
                    "command": "argocd-k8s-auth",
                    "args": ["aws", "--cluster-name", "gpu", "--role-arn", "arn:aws:iam::1:role/r"],
                    "apiVersion": "client.authentication.k8s.io/v1beta1",
                }
            },
        ),
        (
            {"execProviderConfig": {"command": "c", "args": ["a"], "env": {"A": "b"}, "apiVersion": "v"}},
            {
                "exec": {
                    "command": "c",
                    "args": ["a"],
                    "env": [{"name": "A", "value": "b"}],
                    "apiVersion": "v",
                    "provideClusterInfo": False,
                }
            },
        ),
    ],
    ids=["password", "certificate", "AWS", "plugin"],
)
def test_every_kind_of_credentials_is_read(tmp_path, config, user):
    folder = mount(tmp_path / "us-1", {"server": "https://a:6443", "config": config})

    assert argo_document(folder)["users"][0]["user"] == user


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({}, "has no key “server” and no key “config”"),
        ({"kubeconfig": "kind: Config"}, "has no key “server”"),
        ({"server": "https://a:6443"}, "has no key “config”"),
        ({"server": "https://a:6443", "config": "{"}, "is not the JSON of Argo CD"),
        ({"server": "https://a:6443", "config": {"bearerToken": 5}}, "is not the JSON of Argo CD"),
        ({"server": "https://a:6443", "config": {"execProviderConfig": {}}}, "is not the JSON of Argo CD"),
        ({"server": "https://a:6443", "config": {}}, "has no credentials"),
        ({"server": "a:6443", "config": DOCUMENTED}, "is no address"),
        ({"server": "https://kubernetes.default.svc", "config": DOCUMENTED}, "--in-cluster"),
        (
            {"server": "https://a:6443", "config": {"bearerToken": "t", "tlsClientConfig": {"caData": "-----B"}}},
            "is not Base64",
        ),
    ],
)
def test_rubbish_gets_a_sentence_without_its_contents(tmp_path, keys, sentence):
    folder = mount(tmp_path / "us-1", keys)

    with pytest.raises(BadKubeconfig, match=sentence) as refusal:
        connect(str(folder), "")

    assert str(tmp_path) not in str(refusal.value)
    assert "first" not in refusal.value.in_full


def a_profile(server: str, *, provider: str = "token", **more: Any) -> dict[str, Any]:
    """As in sigs.k8s.io/cluster-inventory-api, apis/v1alpha1/clusterprofile_types.go."""
    return {"status": {"accessProviders": [{"name": provider, "cluster": {"server": server, **more}}]}}


@pytest.fixture
def home(server, tmp_path, monkeypatch) -> Server:
    """The cluster in which we run. Its CA is not asked: http is enough here."""
    for name, text in (("token", "pod"), ("ca.crt", "-----BEGIN CERTIFICATE-----"), ("namespace", "quarterdeck")):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.server_port))
    monkeypatch.setattr(incluster_config.InClusterConfigLoader, "_set_config", at_http)
    server.token = "pod"
    return server


def at_http(loader: Any, configuration: Any) -> None:
    configuration.host = loader.host.replace("https", "http")
    configuration.api_key["BearerToken"] = loader.token


def providers(folder: Path, plugin: str, name: str = "token", **more: Any) -> str:
    """A file of providers whose plugin prints the token that a file has now."""
    script = folder / "plugin"
    script.write_text(f"#!{sys.executable}\n{plugin}")
    script.chmod(0o700)
    config = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script), "provideClusterInfo": True}
    path = folder / "providers.json"
    path.write_text(json.dumps({"providers": [{"name": name, "execConfig": config, **more}]}))
    return str(path)


PLUGIN = """
import json, os, pathlib
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
token = pathlib.Path(asked["spec"]["cluster"]["config"]["file"]).read_text()
print(json.dumps({"apiVersion": asked["apiVersion"], "kind": "ExecCredential", "status": {"token": token}}))
"""


def test_a_cluster_profile_gives_server_and_plugin_and_a_new_token_is_used(home, tmp_path):
    (tmp_path / "rotated").write_text("pod")
    plugin = [{"name": "client.authentication.k8s.io/exec", "extension": {"file": str(tmp_path / "rotated")}}]
    home.answers[PROFILE_PATH] = a_profile(home.url, extensions=plugin)
    file = providers(tmp_path, PLUGIN)
    with closing(connect(file, "clusterprofile:fleet/us-1")) as connection:
        assert b"v1.34.2" in connection.get("/version")

    for name in ("token", "rotated"):
        (tmp_path / name).write_text("second")
    home.token = "second"

    with closing(connect(file, "clusterprofile:fleet/us-1")) as connection:
        assert b"v1.34.2" in connection.get("/version")


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        (None, "The ClusterProfile does not exist"),
        ({"status": {"accessProviders": 3}}, "The ClusterProfile cannot be read"),
        ({}, "no access provider that this installation knows"),
        (a_profile("http://127.0.0.1:1", provider="other"), "no access provider that this installation knows"),
    ],
)
def test_a_cluster_profile_that_gives_no_access_gets_a_sentence(home, tmp_path, profile, sentence):
    home.answers[PROFILE_PATH] = profile

    with pytest.raises(BadKubeconfig, match=sentence):
        connect(providers(tmp_path, ""), "clusterprofile:fleet/us-1")


def test_a_home_cluster_that_refuses_us_says_nothing_of_the_other(home, tmp_path):
    home.token = "else"

    with pytest.raises(BadKubeconfig, match="cannot be read from the cluster of Quarterdeck") as refusal:
        connect(providers(tmp_path, ""), "clusterprofile:fleet/us-1")

    assert refusal.value.retry_after_s


def test_arguments_and_variables_of_a_profile_count_only_where_the_administrator_allows_it(tmp_path):
    names = "clusterprofiles.multicluster.x-k8s.io/exec/additional-"
    extensions = [{"name": f"{names}args", "extension": ["-x"]}, {"name": f"{names}envs", "extension": {"A": "theirs"}}]
    answer = json.dumps(a_profile("https://a", extensions=extensions)).encode()
    allowed = {"profileSourcedCLIArgsPolicy": "Append", "profileSourcedEnvVarsPolicy": "AppendIfNotExists"}

    def plugin(**more: Any) -> dict[str, Any]:
        return profile_document(answer, Path(providers(tmp_path, "", **more)))["users"][0]["user"]["exec"]

    assert {"args", "env"}.isdisjoint(plugin())
    assert plugin(**allowed)["args"] == ["-x"]
    assert plugin(**allowed)["env"] == [{"name": "A", "value": "theirs"}]


@pytest.mark.parametrize("text", ["", "[]", '{"providers": [{"name": "token"}]}'])
def test_a_bad_file_of_providers_gets_a_sentence(tmp_path, text):
    (tmp_path / "providers.json").write_text(text)

    with pytest.raises(BadKubeconfig, match="file of access providers"):
        profile_document(b"{}", tmp_path / "providers.json")


def test_the_folder_of_another_person_is_named(tmp_path):
    folder = mount(tmp_path / "us-1", {"server": "https://a", "config": DOCUMENTED})
    (folder / "..data" / "config").write_bytes(b"\xff\xfe")

    with pytest.raises(BadKubeconfig, match="cannot be read") as refusal:
        connect(str(folder), "")

    assert os.fspath(folder / "config") in refusal.value.in_full
