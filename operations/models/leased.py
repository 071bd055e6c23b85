from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.db import models, transaction
from django.db.models import F

from edges.locks import lock_unheld
from edges.transition_errors import LostRace
from fleet.messages import wake


class Leased(models.Model):
    """A row whose rounds run in one worker at a time. Writes under an old epoch are lost."""

    lease_for: ClassVar[timedelta]  # longer than a round takes; a killed worker costs this much
    round_task: ClassVar[str] = "rollouts.tasks.run_leased"  # runs one round; takes `model` and `key`
    queue_name: ClassVar[str] = "rollouts"  # whose workers run its rounds

    next_look_at = models.DateTimeField(null=True)  # null: nobody needs to
    epoch = models.PositiveBigIntegerField(default=0)  # counts the turns
    lease_owner = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField()

    class Meta:
        abstract = True

    @classmethod
    def queue_round(cls, key: int) -> None:
        """Queues a round of the row with this key. The row says when; the message only hints it."""
        kwargs = {"model": cls.__name__, "key": key}
        wake.queue(cls.round_task, queue=cls.queue_name, kwargs=kwargs, expires=30)

    def its_row(self) -> models.QuerySet[Any]:
        """Returns the row; nothing if no round is left to run."""
        raise NotImplementedError

    def mine(self) -> models.QuerySet[Any]:
        """Returns the row; nothing if another worker has the turn."""
        return self.its_row().filter(epoch=self.epoch)

    def take_lease(self, *, owner: str, now: datetime) -> bool:
        """Takes the next round; returns False if another worker has it, none is left, or the row is locked.

        It does not wait for a lock, so that other rows are not delayed.
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
        """Renews the lease. In a transaction this proves that the writes with it are ours.

        :raises LostRace: when another worker has the lease
        """
        if not self.mine().update(lease_until=now + self.lease_for):
            raise LostRace(f"Epoch {self.epoch} of {self} is over.")
