"""Reads the gates of a plan, such as `{"soak": {"duration_s": 600}}`. Pure.

A duration is in seconds (`…_s`), a switch is true or false, `reason` is text, an expression is longer text, and
`groups` is people by group, such as `{"sre": 1}`.
"""

import math
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any, get_type_hints

from health.telemetry.service_levels.expression import LONGEST as LONGEST_EXPRESSION
from rollouts.gates import GATES
from rollouts.gates.approval import GROUP, LONGEST_GROUP, Groups
from rollouts.gates.base import Gate, Promql

LONGEST_REASON = 200
LONGEST_TEXT: Mapping[type, int] = {str: LONGEST_REASON, Promql: LONGEST_EXPRESSION}


class BadGate(ValueError):
    """The plan has an unknown gate, an unknown option, or a value that the option cannot have."""


def read_gates(written: Mapping[str, Mapping[str, Any]]) -> list[Gate]:
    """Returns the gates in the order of the table.

    :raises BadGate: with the entry that cannot be read
    """
    if unknown := set(written) - set(GATES):
        raise BadGate(f"Unknown gate “{sorted(unknown)[0]}”. Gates: {', '.join(GATES)}.")
    return [_read_gate(key, written[key]) for key in GATES if key in written]


def _read_gate(key: str, written: Mapping[str, Any]) -> Gate:
    if not isinstance(written, Mapping):
        raise BadGate(f"The options of {key} must be an object.")
    options = kinds_of(GATES[key])
    by_wire_name = {wire_name(option, kind): option for option, kind in options.items()}
    chosen = {}
    for name, value in written.items():
        if name not in by_wire_name:
            raise BadGate(f"{key} has no option “{name}”. Options: {', '.join(by_wire_name)}.")
        option = by_wire_name[name]
        chosen[option] = _read_value(key, name, value, options[option])
    try:
        return GATES[key](**chosen)
    except ValueError as refusal:
        raise BadGate(f"{key}: {refusal}") from refusal


def kinds_of(gate: type[Gate]) -> dict[str, type]:
    """Returns the type of each option; the options of every gate come last."""
    return _KINDS[gate]


def _read_value(key: str, name: str, value: Any, kind: type) -> Any:
    if kind is bool:
        if not isinstance(value, bool):
            raise BadGate(f"{key}: {name} must be true or false.")
        return value
    if kind in LONGEST_TEXT:
        if not isinstance(value, str) or len(value) > LONGEST_TEXT[kind]:
            raise BadGate(f"{key}: {name} must be text of at most {LONGEST_TEXT[kind]} characters.")
        if not is_text(value):
            raise BadGate(f"{key}: {name} contains a character that cannot be stored.")
        return value.strip()
    return _read_groups(key, name, value) if kind == Groups else _read_number(key, name, value, kind)


def _read_number(key: str, name: str, value: Any, kind: type) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:  # also refuses NaN
        raise BadGate(f"{key}: {name} must be a number of 0 or more.")
    if kind is timedelta:
        return _read_seconds(key, name, value)
    if not (isinstance(value, int) or (kind is float and math.isfinite(value))):
        raise BadGate(f"{key}: {name} must be a {'finite' if kind is float else 'whole'} number.")
    return value


def is_text(value: str) -> bool:
    """Returns whether a database can store the text: no NUL and no lone surrogate."""
    return not any(each == "\x00" or "\ud800" <= each <= "\udfff" for each in value)


def _read_groups(key: str, name: str, value: Any) -> Groups:
    if not isinstance(value, Mapping):
        raise BadGate(f"{key}: {name} must give the number of people of each group, as in sre: 1.")
    for group, number in value.items():
        if not isinstance(group, str) or not GROUP.fullmatch(group):
            raise BadGate(f"{key}: {name} must name groups, each by one word of at most {LONGEST_GROUP} characters.")
        if isinstance(number, bool) or not isinstance(number, int):
            raise BadGate(f"{key}: {name} must give the number of people of {group} as a whole number.")
    return dict(value)


def _read_seconds(key: str, name: str, value: float) -> timedelta:
    try:
        return timedelta(seconds=value)
    except (OverflowError, ValueError) as beyond:  # JSON allows 1e400 and, to Python, NaN
        raise BadGate(f"{key}: {name} is not a duration.") from beyond


def _read_kinds(gate: type[Gate]) -> dict[str, type]:
    own = sorted(fields(gate), key=lambda field: field.kw_only is True)
    hints = get_type_hints(gate)
    return {field.name: timedelta if field.name == "wait_timeout" else hints[field.name] for field in own}


# Once: reading a class's annotations costs more than reading a gate's options does, and a plan's are read all the time.
_KINDS: Mapping[type[Gate], dict[str, type]] = {gate: _read_kinds(gate) for gate in GATES.values()}


def wire_name(name: str, kind: type) -> str:
    return f"{name}_s" if kind is timedelta else name


def write_options(gate: Gate) -> dict[str, Any]:
    """Returns the options of a gate as a plan would write them; unset groups and common options are left out."""
    unset = {field.name for field in fields(Gate) if getattr(gate, field.name) == field.default}
    values = {name: getattr(gate, name) for name in kinds_of(type(gate)) if name not in unset}
    return {
        wire_name(name, type(value)): value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in values.items()
        if value != {}
    }
