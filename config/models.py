from datetime import datetime, timedelta

from django.db import models, transaction


class ProcessEnd(models.Model):
    """The number of unexpected exits of a process by cause.

    The supervisor writes it, since a dead process cannot report its own exit.
    """

    process = models.CharField(max_length=32)  # web, observe, rollouts, default, beat
    cause = models.CharField(max_length=32)  # SIGSEGV, SIGKILL, …, or exit 1
    times = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField()
    last_host = models.CharField(max_length=100)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["process", "cause"], name="one_count_per_process_and_cause")]

    @classmethod
    def note(cls, process: str, cause: str, *, host: str, now: datetime) -> None:
        with transaction.atomic():
            cls.objects.get_or_create(process=process, cause=cause, defaults={"last_at": now, "last_host": host})
            cls.objects.filter(process=process, cause=cause).update(
                times=models.F("times") + 1, last_at=now, last_host=host
            )


class Sweep(models.Model):
    """The number of items a sweep found in total, and its last run."""

    EVERY = timedelta(minutes=1)  # a sweep without findings writes no more often

    what = models.CharField(max_length=32, unique=True)  # leases, rows (`config.sweeps`)
    found = models.PositiveBigIntegerField(default=0)
    last_at = models.DateTimeField()

    @classmethod
    def note(cls, what: str, *, found: int, now: datetime) -> None:
        row, is_new = cls.objects.get_or_create(what=what, defaults={"found": found, "last_at": now})
        if not is_new and (found or now - row.last_at >= cls.EVERY):
            cls.objects.filter(pk=row.pk).update(found=models.F("found") + found, last_at=now)


class WriteProbe(models.Model):
    """The single row that `/readyz` writes to prove that the database accepts writes."""

    at = models.DateTimeField()
