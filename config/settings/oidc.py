"""Settings of single sign-on by OpenID Connect."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from config.settings.variables import Variables

ROLES = ("viewer", "operator", "approver", "admin")
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
TOKEN_AUTHS = ("", "client_secret_basic", "client_secret_post")
LONGEST_ISSUER = 200  # characters, as the rows of accounts have


@dataclass(frozen=True)
class GroupRole:
    """A role on a place for the members of one group of the identity provider."""

    group: str
    role: str
    place: str  # as in commands: fleet, eu-1, eu-1/h200


@dataclass(frozen=True)
class Oidc:
    issuer: str  # blank: single sign-on is off
    client_id: str
    client_secret: str = field(repr=False)
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    groups_claim: str = "groups"  # realm_access.roles: a claim in a claim
    name_claim: str = "preferred_username"
    token_auth: str = ""  # how the client proves itself; blank: by the discovery document
    ca_file: str = ""  # blank: the system's certificates
    roles: tuple[GroupRole, ...] = ()

    @property
    def is_on(self) -> bool:
        return bool(self.issuer)

    @property
    def providers(self) -> dict[str, Any]:
        """Returns the settings of django-allauth."""
        if not self.is_on:
            return {}
        options: dict[str, Any] = {"server_url": self.issuer, "oauth_pkce_enabled": True, "scope": list(self.scopes)}
        if self.token_auth:
            options["token_auth_method"] = self.token_auth
        app = {"provider_id": "sso", "name": "SSO", "client_id": self.client_id, "secret": self.client_secret}
        return {"openid_connect": {"APPS": [{**app, "settings": options}]}}


def read_oidc(env: Variables) -> Oidc:
    """Returns the settings.

    :raises ImproperlyConfigured: when a variable is missing or invalid
    """
    issuer = env("QUARTERDECK_OIDC_ISSUER", default="").rstrip("/")
    secret_file = env("QUARTERDECK_OIDC_CLIENT_SECRET_FILE", default="")
    secret = Path(secret_file).read_text().strip() if secret_file else env("QUARTERDECK_OIDC_CLIENT_SECRET", default="")
    settings = Oidc(
        issuer=issuer,
        client_id=env("QUARTERDECK_OIDC_CLIENT_ID", default=""),
        client_secret=secret,
        scopes=tuple(env("QUARTERDECK_OIDC_SCOPES", default=" ".join(Oidc.scopes)).split()),
        groups_claim=env("QUARTERDECK_OIDC_GROUPS_CLAIM", default=Oidc.groups_claim),
        name_claim=env("QUARTERDECK_OIDC_NAME_CLAIM", default=Oidc.name_claim),
        token_auth=env("QUARTERDECK_OIDC_TOKEN_AUTH", default=""),
        ca_file=env("QUARTERDECK_OIDC_CA_FILE", default=env("SSL_CERT_FILE", default="")),
        roles=tuple(read_roles(env("QUARTERDECK_OIDC_ROLES", default=""))),
    )
    if not issuer:
        return settings
    address = urlsplit(issuer)
    if address.scheme != "https" and address.hostname not in LOOPBACK:
        raise ImproperlyConfigured("QUARTERDECK_OIDC_ISSUER must be an https address.")
    if len(issuer) > LONGEST_ISSUER:
        raise ImproperlyConfigured(f"QUARTERDECK_OIDC_ISSUER has more than {LONGEST_ISSUER} characters.")
    if not settings.client_id or not secret:
        raise ImproperlyConfigured("QUARTERDECK_OIDC_ISSUER needs QUARTERDECK_OIDC_CLIENT_ID and a client secret.")
    if settings.token_auth not in TOKEN_AUTHS:
        raise ImproperlyConfigured(
            f"QUARTERDECK_OIDC_TOKEN_AUTH must be one of: {', '.join(filter(None, TOKEN_AUTHS))}."
        )
    return settings


def read_roles(text: str) -> Iterator[GroupRole]:
    """Yields the mapping of groups, written as `gpu-admins=admin; team-a=viewer@eu-1/h200`.

    :raises ImproperlyConfigured: when a part has no group or an unknown role
    """
    for part in filter(None, (part.strip() for part in text.split(";"))):
        group, _, given = part.rpartition("=")
        role, _, place = given.partition("@")
        if not group or role not in ROLES:
            raise ImproperlyConfigured(
                f"QUARTERDECK_OIDC_ROLES: “{part}” is not GROUP=ROLE or GROUP=ROLE@PLACE. Roles: {', '.join(ROLES)}."
            )
        yield GroupRole(group.strip(), role, place or "fleet")
