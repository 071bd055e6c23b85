"""How long something is."""

from datetime import timedelta

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def spell(duration: timedelta) -> str:
    """ "3 min", "2 h 5 min", "4 d 1 h": the two largest units side by side, in whole seconds."""
    left = max(0, int(duration.total_seconds()))
    words: list[str] = []
    for seconds, unit in UNITS:
        number, left = divmod(left, seconds)
        if number:
            words.append(f"{number} {unit}")
        elif words:
            break
    return " ".join(words[:2]) if words else "0 s"
