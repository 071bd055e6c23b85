"""What a kubeconfig has us run sees the environment without our secrets, wherever we run it."""

import json
import stat
import time
from pathlib import Path

import pytest

from kube.client import kubeconfig, plugins

SECRETS = {
    "QUARTERDECK_SECRET_KEY": "signs sessions",
    "DATABASE_URL": "postgres://quarterdeck:password@host/name",
    "REDIS_URL": "redis://:password@host/0",
    "POSTGRES_PASSWORD": "password",
    "PGPASSWORD": "password",
    "DJANGO_SETTINGS_MODULE": "config.settings.prod",
}
PLUGIN = """#!/bin/sh
env > {seen}
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "t"}}}}'
"""


def a_kubeconfig(folder: Path, script: str, **exec_with) -> str:
    plugin = folder / "plugin"
    plugin.write_text(script)
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), **exec_with}
    content = {
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": {"exec": run}}],
        "contexts": [{"name": "one", "context": {"cluster": "a", "user": "a"}}],
    }
    path = folder / "config"
    path.write_text(json.dumps(content))
    return str(path)


@pytest.fixture(autouse=True)
def _secrets(monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_PROFILE", "gpu-fleet")


def test_a_plugin_sees_none_of_our_secrets(tmp_path):
    settings = kubeconfig.load(a_kubeconfig(tmp_path, PLUGIN.format(seen=tmp_path / "seen")), "one")

    seen = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines() if "=" in line)
    assert settings.auth_settings()["BearerToken"]["value"] == "Bearer t"
    assert not set(seen) & set(SECRETS)
    assert seen["AWS_PROFILE"] == "gpu-fleet"
    assert "KUBERNETES_EXEC_INFO" in seen


def test_what_the_kubeconfig_itself_sets_stays(tmp_path):
    path = a_kubeconfig(
        tmp_path, PLUGIN.format(seen=tmp_path / "seen"), env=[{"name": "POSTGRES_PASSWORD", "value": "its own"}]
    )

    kubeconfig.load(path, "one")

    assert "POSTGRES_PASSWORD=its own" in (tmp_path / "seen").read_text()


def test_a_plugin_that_never_ends_is_ended(tmp_path, monkeypatch):
    """The client then goes on without credentials, and the API server's 401 is what is told."""
    monkeypatch.setattr(plugins, "TIMEOUT_S", 0.2)
    began = time.monotonic()

    kubeconfig.load(a_kubeconfig(tmp_path, "#!/bin/sh\nexec sleep 600\n"), "one")

    assert time.monotonic() - began < 300


def test_the_commands_of_old_providers_see_none_either(tmp_path):
    """`auth-provider` with `cmd-path` inherits, where exec is handed a copy."""
    process = plugins.Plugin(["env"], stdout=plugins.subprocess.PIPE, universal_newlines=True)

    said, _ = process.communicate()

    assert not [name for name in SECRETS if f"{name}=" in said]
