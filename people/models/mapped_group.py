from __future__ import annotations

from django.db import models

from people.models.user import Role, ScopeKind

LONGEST_GROUP = 255  # characters of a group's name or id


class GroupMapping(models.Model):
    """A role on a place for everybody in one group of the identity provider. It counts at each sign-in."""

    group = models.CharField(max_length=LONGEST_GROUP)
    role = models.CharField(max_length=16, choices=Role.choices)
    scope = models.CharField(max_length=16, choices=ScopeKind.choices)
    scope_id = models.BigIntegerField(default=0)  # key of the cluster or pool; 0 for the fleet

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "role", "scope", "scope_id"], name="one_mapping_each")]
        ordering = ["group", "pk"]
