from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import AbstractUser

if TYPE_CHECKING:
    from people.models.api_token import ApiToken


class User(AbstractUser):
    """A person, or the automation that acts for one."""

    # Set for one request by whoever let the caller in: what the token may not do, its owner may not do through it.
    token: ApiToken | None = None
