from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import AbstractUser

if TYPE_CHECKING:
    from people.models.api_token import ApiToken
from django.conf import settings
from django.db import models


class User(AbstractUser):
    # Set by the authentication of a request. It limits the permissions of that request.
    token: ApiToken | None = None


class Role(models.TextChoices):
    VIEWER = "viewer"  # sees
    OPERATOR = "operator"  # drafts, starts, stops, rolls back
    APPROVER = "approver"  # approves requests of other people; may stop
    ADMIN = "admin"  # every right, also on clusters, pools and people; never approves own requests


class ScopeKind(models.TextChoices):
    FLEET = "fleet"
    CLUSTER = "cluster"
    POOL = "pool"


class RoleBinding(models.Model):
    """One role of one person on the fleet, a cluster or a pool."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="bindings")
    role = models.CharField(max_length=16, choices=Role.choices)
    scope = models.CharField(max_length=16, choices=ScopeKind.choices, default=ScopeKind.FLEET)
    scope_id = models.BigIntegerField(default=0)  # key of the cluster or pool; 0 for the fleet

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "role", "scope", "scope_id"], name="one_binding_each")]


class SignInTries(models.Model):
    """The number of tries in a window of time. In the database, so that other tries cannot evict it."""

    key = models.CharField(max_length=64, unique=True)  # a digest of the counted name or address, which is not stored
    number = models.PositiveIntegerField()
    until = models.DateTimeField(db_index=True)  # then the window is over
