from django.core.serializers.json import DjangoJSONEncoder
from django.db import models


class ShownBundle(models.Model):
    """A bundle that somebody was shown, by its hash; tells what has changed since."""

    stage = models.ForeignKey("rollouts.Stage", models.CASCADE, related_name="shown_bundles")
    hash = models.CharField(max_length=64)
    content = models.JSONField(encoder=DjangoJSONEncoder)
    at = models.DateTimeField()  # when it was first shown

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stage", "hash"], name="one_shown_bundle_per_hash")]
