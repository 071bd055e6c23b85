"""Driver versions compared as numbers: `580.95.05` and `580.95.5` are one driver (DRA drops the zero)."""


def same_version(one: str, other: str) -> bool:
    """Whether both name the same driver. A blank names none."""
    return bool(one) and bool(other) and _parts(one) == _parts(other)


def _parts(version: str) -> tuple[int | str, ...]:
    return tuple(int(part) if part.isdecimal() else part for part in version.strip().split("."))
