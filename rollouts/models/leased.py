from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.db import models, transaction
from django.db.models import F

from edges.locks import lock_unheld
from edges.transition_errors import LostRace


class Leased(models.Model):
    """A row that one worker at a time runs rounds of. What is written under an old epoch is lost."""

    lease_for: ClassVar[timedelta]  # longer than a round takes; a killed worker costs this much

    next_look_at = models.DateTimeField(null=True)  # null: nobody needs to
    epoch = models.PositiveBigIntegerField(default=0)  # counts the turns
    lease_owner = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField()

    class Meta:
        abstract = True

    def its_row(self) -> models.QuerySet[Any]:
        """The row itself, and none where there is no round to run any more."""
        raise NotImplementedError

    def mine(self) -> models.QuerySet[Any]:
        """The row, and none where the turn is another worker's by now."""
        return self.its_row().filter(epoch=self.epoch)

    def take_lease(self, *, owner: str, now: datetime) -> bool:
        """Take the next round. False: another worker is in one, there is none to run, or somebody holds the row.

        A worker that waited for the row would be missing for every other plan.
        """
        until = now + self.lease_for
        free = self.mine().filter(lease_until__lte=now)
        with transaction.atomic():
            if not lock_unheld(free):
                return False
            taken = free.update(epoch=F("epoch") + 1, lease_owner=owner, lease_until=until, next_look_at=until)
        if taken:
            self.epoch += 1
        return bool(taken)

    def keep_lease(self, *, now: datetime) -> None:
        """Move the lease. Inside a transaction it also proves that what is written with it is ours to write.

        :raises LostRace: when the lease is another worker's by now
        """
        if not self.mine().update(lease_until=now + self.lease_for):
            raise LostRace(f"Epoch {self.epoch} of {self} is over.")
