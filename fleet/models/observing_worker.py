from datetime import datetime, timedelta

from django.db import models, transaction

from fleet.models.observer import LEASE

FORGOTTEN_AFTER = timedelta(days=1)


class ObservingWorker(models.Model):
    """A process that takes leases of watching, by its own word. One that is silent for a lease no longer counts."""

    name = models.CharField(max_length=100, unique=True)  # as in `Observer.owner`
    threads = models.PositiveIntegerField()  # the clusters it can watch at once
    lease_until = models.DateTimeField()

    @classmethod
    def report(cls, name: str, *, threads: int, now: datetime) -> None:
        with transaction.atomic():
            said = {"threads": threads, "lease_until": now + LEASE}
            cls.objects.update_or_create(name=name, defaults=said)
            cls.objects.filter(lease_until__lt=now - FORGOTTEN_AFTER).delete()

    @classmethod
    def leave(cls, name: str) -> None:
        cls.objects.filter(name=name).delete()
