"""One virtual clock for the product, the API server and the log: no two things happen at the same instant."""

from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
A_MOMENT = timedelta(microseconds=100)


class VirtualClock:
    """Called: the product's clock. `now`: the API server's."""

    def __init__(self, at: datetime = NOON) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at

    def now(self) -> datetime:
        return self.at

    def move(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)

    def moment(self) -> datetime:
        """The next instant that nobody has had."""
        self.at += A_MOMENT
        return self.at
