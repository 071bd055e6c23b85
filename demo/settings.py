"""What the processes are told through their environment."""

import os
import secrets
import shlex
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Whoever calls us may live in another Quarterdeck's environment: nothing of that one may reach ours.
NOT_OURS = ("QUARTERDECK_", "DJANGO_", "CELERY_", "DATABASE_URL", "REDIS_URL", "KUBECONFIG")


def environment(
    folder: Path, *, redis_url: str, database_url: str, debug: bool, has_prometheus: bool = False, port: int = 0
) -> dict[str, str]:
    """Return the environment of every process of a stack that keeps its things in the folder."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(NOT_OURS)}
    # The web process checks the same settings; in each worker, and in beat, that takes another second of the start.
    own = {"PYTHONUNBUFFERED": "1", "CELERY_SKIP_CHECKS": "1"}
    ours = contract(folder, redis_url, database_url, debug=debug, has_prometheus=has_prometheus)
    links = {"QUARTERDECK_PUBLIC_URL": f"http://127.0.0.1:{port}"} if port else {}
    return {**inherited, **own, **ours, **links}


def contract(
    folder: Path, redis_url: str, database_url: str, *, debug: bool, has_prometheus: bool = False
) -> dict[str, str]:
    """Return the product's own variables; it listens on loopback only."""
    return {
        "DJANGO_SETTINGS_MODULE": "config.settings.dev",
        "QUARTERDECK_DATA_DIR": str(folder),
        "QUARTERDECK_SECRET_KEY": secret_key(folder / "secret.key"),
        "QUARTERDECK_ALLOWED_HOSTS": "127.0.0.1,localhost",
        "QUARTERDECK_DEBUG": "true" if debug else "false",
        "QUARTERDECK_TELEMETRY_LOOPBACK": "true" if has_prometheus else "false",  # it runs beside us
        # Receivers of notifications on this machine: docs/notifications.md has how to try them.
        "QUARTERDECK_NOTIFICATION_NETWORKS": "127.0.0.0/8",
        "QUARTERDECK_SMTP_URL": "smtp://127.0.0.1:8025",
        "QUARTERDECK_SECRETS_DIR": str(folder / "secrets"),
        "DATABASE_URL": database_url or f"sqlite:///{folder / 'quarterdeck.sqlite3'}",
        "REDIS_URL": redis_url,
    }


def secret_key(file: Path) -> str:
    """Return the key that signs sessions, made on the first start and readable by its owner only."""
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(48))
    return file.read_text()


def write_for_shell(file: Path, variables: Mapping[str, str]) -> None:
    """Leave the variables where `bin/manage` finds them."""
    file.touch(mode=0o600)
    file.write_text("".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items()))
