import pytest

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
        (None, "one", "There is no file"),
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
