from django.conf import settings
from django.db import models


class Role(models.TextChoices):
    VIEWER = "viewer"  # sees
    OPERATOR = "operator"  # drafts, starts, stops, rolls back
    APPROVER = "approver"  # approves what somebody else asks for; may stop
    ADMIN = "admin"  # all of it, and clusters, pools and people; never approves what is their own


class ScopeKind(models.TextChoices):
    FLEET = "fleet"
    CLUSTER = "cluster"
    POOL = "pool"


class RoleBinding(models.Model):
    """One role of one person, on the fleet, on one cluster or on one pool."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="bindings")
    role = models.CharField(max_length=16, choices=Role.choices)
    scope = models.CharField(max_length=16, choices=ScopeKind.choices, default=ScopeKind.FLEET)
    scope_id = models.BigIntegerField(default=0)  # key of the cluster or pool; 0 for the fleet

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "role", "scope", "scope_id"], name="one_binding_each")]
