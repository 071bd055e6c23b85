"""System checks: settings that would fail later or silently fail at boot, with a hint."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Doubt
from django.core.exceptions import ImproperlyConfigured

from people.sign_in.addresses import proxies as read_proxies

SHORTEST_KEY = 50
FEWEST_LETTERS = 8  # different characters
KEY_HINT = (
    "Set QUARTERDECK_SECRET_KEY to what this prints: python -c 'import secrets; print(secrets.token_urlsafe(64))'"
)
REDIS_SCHEMES = {"redis", "rediss", "unix"}
LOOPBACK = {"127.0.0.1", "localhost", "[::1]"}


@register()
def secret_key(**_: Any) -> list[CheckMessage]:
    """Checks the key behind sessions and CSRF tokens. On loopback (demo, tests) any key is accepted."""
    try:
        key = settings.SECRET_KEY
    except ImproperlyConfigured:
        return [Error("There is no secret key.", KEY_HINT, id="qd.E001")]
    if set(settings.ALLOWED_HOSTS) <= LOOPBACK or (len(key) >= SHORTEST_KEY and len(set(key)) >= FEWEST_LETTERS):
        return []
    return [
        Error(f"The secret key is shorter than {SHORTEST_KEY} characters or easy to guess.", KEY_HINT, id="qd.E001")
    ]


@register()
def hosts(**_: Any) -> list[CheckMessage]:
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    hint = "List the hosts in QUARTERDECK_ALLOWED_HOSTS. They protect WebSockets from foreign pages."
    return [Error("Every host is allowed.", hint, id="qd.E002")]


@register()
def proxies(**_: Any) -> list[CheckMessage]:
    try:
        read_proxies(settings.QUARTERDECK_PROXIES)
    except ValueError as error:
        hint = "Give the addresses or networks of your proxies with commas, or their number."
        return [Error(f"QUARTERDECK_PROXIES cannot be read: {error}.", hint, id="qd.E006")]
    return []


@register()
def redis_url(**_: Any) -> list[CheckMessage]:
    parts = urlsplit(settings.REDIS_URL)
    if parts.scheme in REDIS_SCHEMES and (parts.hostname or (parts.scheme == "unix" and parts.path)):
        return []
    hint = "Write it as redis://HOST:PORT/0, rediss://… for TLS or unix:///path/to/socket."
    return [Error("REDIS_URL is not a Redis address.", hint, id="qd.E003")]


@register()
def sqlite_folder(**_: Any) -> list[CheckMessage]:
    """Checks the folder: SQLite writes its journal beside the file, so the folder must be writable."""
    database = settings.DATABASES["default"]
    if not database["ENGINE"].endswith("sqlite3") or is_in_memory(str(database["NAME"])):
        return []
    folder = Path(database["NAME"]).parent
    if not folder.is_dir():
        hint = "Create it, or set another folder in QUARTERDECK_DATA_DIR."
        return [Error(f"The data folder {folder} does not exist.", hint, id="qd.E004")]
    if not os.access(folder, os.W_OK | os.X_OK):
        hint = f"Make it writable for this user (chown {folder}), or set another folder in QUARTERDECK_DATA_DIR."
        return [Error(f"The data folder {folder} is not writable.", hint, id="qd.E005")]
    return []


def is_in_memory(name: str) -> bool:
    return ":memory:" in name or "mode=memory" in name


@register()
def one_machine(**_: Any) -> list[CheckMessage]:
    """Warns if Redis runs on another machine: then workers run elsewhere too, without access to this file."""
    is_sqlite = settings.DATABASES["default"]["ENGINE"].endswith("sqlite3")
    parts = urlsplit(settings.REDIS_URL)
    if not is_sqlite or parts.scheme == "unix" or parts.hostname in {"127.0.0.1", "localhost", "::1", None}:
        return []
    hint = "Set DATABASE_URL to a PostgreSQL. Ignore this if every process runs on this machine."
    return [Doubt("The database is a local file, but Redis runs on another machine.", hint, id="qd.W001")]
