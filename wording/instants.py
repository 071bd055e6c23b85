"""Instants as text."""

from datetime import UTC, datetime, tzinfo


def to_the_second(at: datetime | None) -> str:
    """Returns "2026-11-30 08:00:00 UTC". None becomes "the beginning"."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else "the beginning"


def to_the_minute(at: datetime) -> str:
    """Returns "2026-11-30 08:00 UTC"."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def clock(at: datetime, *, now: datetime) -> str:
    """Returns "08:00:00" for today, else "2026-11-30 08:00:00", in UTC."""
    return f"{at:%H:%M:%S}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M:%S}"


def moment(at: datetime, *, now: datetime, zone: tzinfo = UTC, called: str = "UTC") -> str:
    """Returns "08:00 UTC" today, "Monday 08:00 UTC" within a week, else "30 November 2026 08:00 UTC".

    `called` is the name of the zone.
    """
    local, today = at.astimezone(zone), now.astimezone(zone).date()
    days = (local.date() - today).days
    time = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    if days == 0:
        return f"{time} {called}"
    day = f"{local:%A}" if 0 < days < 7 else f"{local.day} {local:%B %Y}"
    return f"{day} {time} {called}"
