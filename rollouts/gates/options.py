"""A plan's gates as it writes them down, `{"soak": {"duration_s": 600}}`, and the gates they make. Pure."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

from rollouts.gates import GATES
from rollouts.gates.base import Gate


class BadGate(ValueError):
    """The plan names a gate or an option that does not exist, or a value the option cannot have."""


def read_gates(written: Mapping[str, Mapping[str, Any]]) -> list[Gate]:
    """The gates in the order of the table, whatever the order in the plan.

    :raises BadGate: naming what cannot be read
    """
    if unknown := set(written) - set(GATES):
        raise BadGate(f"There is no gate “{sorted(unknown)[0]}”. There are: {', '.join(GATES)}.")
    return [_read_gate(key, written[key]) for key in GATES if key in written]


def _read_gate(key: str, written: Mapping[str, Any]) -> Gate:
    if not isinstance(written, Mapping):
        raise BadGate(f"The options of {key} must be an object.")
    options = {field.name: field for field in fields(GATES[key])}
    chosen = {}
    for name, value in written.items():
        option = name.removesuffix("_s")
        if option not in options or (options[option].type is timedelta) != name.endswith("_s"):
            known = ", ".join(wire_name(field.name, field.default) for field in options.values())
            raise BadGate(f"{key} has no option “{name}”. It has: {known}.")
        chosen[option] = _read_value(key, name, value, options[option].default)
    try:
        return GATES[key](**chosen)
    except ValueError as refusal:
        raise BadGate(f"{key}: {refusal}") from refusal


def _read_value(key: str, name: str, value: Any, default: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise BadGate(f"{key}: {name} must be a number that is not negative.")
    if isinstance(default, timedelta):
        return _read_seconds(key, name, value)
    if not isinstance(value, int):
        raise BadGate(f"{key}: {name} must be a whole number.")
    return value


def _read_seconds(key: str, name: str, value: float) -> timedelta:
    try:
        return timedelta(seconds=value)
    except (OverflowError, ValueError) as beyond:  # JSON allows 1e400 and, to Python, NaN
        raise BadGate(f"{key}: {name} is no length of time.") from beyond


def wire_name(name: str, value: Any) -> str:
    return f"{name}_s" if isinstance(value, timedelta) else name


def write_options(gate: Gate) -> dict[str, float | int]:
    """Every option of a gate, as a plan would write it."""
    values = {field.name: getattr(gate, field.name) for field in fields(gate)}  # type: ignore[arg-type]
    return {
        wire_name(name, value): value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in values.items()
    }
