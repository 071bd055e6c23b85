"""The origin check of WebSockets: scheme, name and port must be our own.

`channels.security.websocket.AllowedHostsOriginValidator` compares names only. It would accept another service on
this machine, or the same name without TLS.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int | None


class SameOrigin:
    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        if scope["type"] == "websocket" and not is_ours(scope):
            return await WebsocketDenier()(scope, receive, send)
        return await self.application(scope, receive, send)


def is_ours(scope: dict[str, Any]) -> bool:
    """Tells whether the request comes from our page. A browser sends exactly one Origin; other clients are refused."""
    origins, hosts = _headers(scope, b"origin"), _headers(scope, b"host")
    origin = parse_origin(origins[0]) if len(origins) == 1 else None
    if origin is None or len(hosts) != 1:
        return False
    own = parse_origin(f"{_scheme(scope)}://{hosts[0]}")
    is_known = validate_host(split_domain_port(hosts[0])[0], settings.ALLOWED_HOSTS)
    return (is_known and origin == own) or _is_trusted(origin, settings.CSRF_TRUSTED_ORIGINS)


def parse_origin(text: str) -> Origin | None:
    try:
        parts = urlsplit(text)
        if parts.scheme not in PORTS or not parts.hostname:
            return None
        return Origin(parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme])
    except ValueError:
        return None


def _is_trusted(origin: Origin, trusted: Iterable[str]) -> bool:
    """Matches CSRF_TRUSTED_ORIGINS as Django does: `https://*.example.com` matches the names below it."""
    known = [candidate for written in trusted if (candidate := parse_origin(written))]
    return any(
        (origin.scheme, origin.port) == (candidate.scheme, candidate.port) and fnmatchcase(origin.host, candidate.host)
        for candidate in known
    )


def _scheme(scope: dict[str, Any]) -> str:
    """Returns the scheme; behind a TLS proxy, from the header that Django trusts."""
    if secure := settings.SECURE_PROXY_SSL_HEADER:
        name, value = secure
        values = _headers(scope, name.removeprefix("HTTP_").replace("_", "-").lower().encode())
        return "https" if values and values[0].split(",")[0].strip() == value else "http"
    return "https" if scope.get("scheme") in {"wss", "https"} else "http"


def _headers(scope: dict[str, Any], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope.get("headers", ()) if key.lower() == name]
