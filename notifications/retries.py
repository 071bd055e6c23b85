"""Times at which a message is sent again. Pure."""

from datetime import datetime, timedelta

from notifications.channels.base import GIVE_UP_AFTER, PAGER_RETRIES, RETRIES


def next_try(*, attempts: int, created_at: datetime, is_pager: bool, now: datetime) -> datetime | None:
    """Returns when to try again after so many attempts; None to give up. The last interval repeats."""
    intervals = PAGER_RETRIES if is_pager else RETRIES
    at = now + intervals[min(attempts, len(intervals)) - 1]
    return at if at <= created_at + GIVE_UP_AFTER else None


def pause_after(retry_after_s: float | None) -> timedelta:
    """Returns how long a whole channel rests after a failure that the next message would meet, too."""
    return timedelta(seconds=retry_after_s if retry_after_s is not None else 5)
