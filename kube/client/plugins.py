"""The programs that a kubeconfig names to get credentials (exec plugins): run without our secrets, and not for ever.

The client hands them all of our environment (kubernetes/config/exec_provider.py, `os.environ.copy()`; kube_config.py,
`CommandTokenSource`): the key that signs sessions, and the passwords of the database and of Redis. Both modules start
them by `subprocess.Popen`; what they find there in its place is this.
"""

import os
import subprocess
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from kubernetes.config import exec_provider, kube_config
from kubernetes.config.config_exception import ConfigException

OURS = ("QUARTERDECK_", "DJANGO_", "CELERY_", "DATABASE_URL", "REDIS_URL", "POSTGRES_", "PGPASS")
PATIENCE_S = 30.0  # one that waits for a person at a browser would hold its cluster for ever


def keep_secrets_from_them() -> None:
    stand_in: Any = SimpleNamespace(PIPE=subprocess.PIPE, Popen=Plugin)
    exec_provider.subprocess = stand_in
    kube_config.subprocess = stand_in


class Plugin(subprocess.Popen):
    def __init__(self, args: Any, *, env: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(args, env=without_ours(os.environ if env is None else env), **more)

    def communicate(self, input: Any = None, timeout: float | None = None) -> Any:  # noqa: A002 - as Popen names it
        try:
            return super().communicate(input, timeout or PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            self.kill()
            super().communicate()
            raise ConfigException(f"exec: the plugin did not end within {PATIENCE_S:.0f} s") from error


def without_ours(env: Mapping[str, str]) -> dict[str, str]:
    """What the kubeconfig itself sets stays, whatever its name."""
    return {name: value for name, value in env.items() if not name.startswith(OURS) or value != os.environ.get(name)}
