"""Exec plugins: the credential programs named in a kubeconfig. They run without our secrets and with a timeout.

The client passes them our whole environment (kubernetes/config/exec_provider.py, `os.environ.copy()`;
kube_config.py, `CommandTokenSource`): the session key and the passwords of the database and Redis. Both modules
start plugins by `subprocess.Popen`; this module replaces that name in them.
"""

import os
import subprocess
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from kubernetes.config import exec_provider, kube_config
from kubernetes.config.config_exception import ConfigException

OURS = ("QUARTERDECK_", "DJANGO_", "CELERY_", "DATABASE_URL", "REDIS_URL", "POSTGRES_", "PGPASS")
TIMEOUT_S = 30.0  # a plugin that waits for a person at a browser would block its cluster forever


def hide_secrets_from_plugins() -> None:
    stand_in: Any = SimpleNamespace(PIPE=subprocess.PIPE, Popen=Plugin)
    exec_provider.subprocess = stand_in
    kube_config.subprocess = stand_in


class Plugin(subprocess.Popen):
    def __init__(self, args: Any, *, env: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(args, env=without_our_variables(os.environ if env is None else env), **more)

    def communicate(self, input: Any = None, timeout: float | None = None) -> Any:  # noqa: A002 - as Popen names it
        try:
            return super().communicate(input, timeout or TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            self.kill()
            super().communicate()
            raise ConfigException(f"exec: the plugin did not end within {TIMEOUT_S:.0f} s") from error


def without_our_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Removes our variables; keeps those that the kubeconfig itself sets."""
    return {name: value for name, value in env.items() if not name.startswith(OURS) or value != os.environ.get(name)}
