import pytest
from kubernetes.config import incluster_config

from kube.client import kubeconfig
from kube.client.errors import BadKubeconfig

GOOD = """
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: a, user: {token: secret}}]
contexts: [{name: one, context: {cluster: a, user: a}}, {name: two, context: {cluster: nowhere, user: a}}]
"""


@pytest.mark.parametrize(
    ("content", "context", "sentence"),
    [
        (None, "one", "does not exist"),
        ("a: [", "one", "is not valid YAML"),
        ("just words", "one", "is not a YAML mapping"),
        ("kind: Config", "one", "has no contexts"),
        (GOOD, "three", "has no context “three”. It has: one, two."),
        (GOOD, "two", "cannot be used"),
    ],
)
def test_says_what_is_wrong_with_it(tmp_path, content, context, sentence):
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)

    with pytest.raises(BadKubeconfig) as refusal:
        kubeconfig.load(str(path), context)

    assert sentence in refusal.value.in_full
    assert str(tmp_path) in refusal.value.in_full
    assert not any(word in str(refusal.value) for word in (str(tmp_path), "“", "three", "two"))


def test_a_context_gives_its_server_and_credentials(tmp_path):
    (tmp_path / "config").write_text(GOOD)

    settings = kubeconfig.load(str(tmp_path / "config"), "one")

    assert settings.host == "http://127.0.0.1:1"
    assert settings.auth_settings()["BearerToken"]["value"] == "Bearer secret"


def test_without_a_path_we_must_run_in_a_pod():
    with pytest.raises(BadKubeconfig, match="Not running in a pod"):
        kubeconfig.load("", "")


def test_in_a_pod_the_service_account_gives_server_credentials_and_namespace(tmp_path, monkeypatch):
    """The files are those of kubernetes.io/docs/tasks/run-application/access-api-from-pod."""
    for name, text in (
        ("token", "of-the-account"),
        ("ca.crt", "-----BEGIN CERTIFICATE-----"),
        ("namespace", "gpu-fleet\n"),
    ):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")

    settings = kubeconfig.load("", "")

    assert settings.host == "https://10.0.0.1:443"
    assert settings.auth_settings()["BearerToken"]["value"] == "bearer of-the-account"
    assert kubeconfig.pod_namespace() == "gpu-fleet"


def test_outside_of_a_pod_its_namespace_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))

    with pytest.raises(BadKubeconfig, match="The namespace of our pod is unknown"):
        kubeconfig.pod_namespace()
