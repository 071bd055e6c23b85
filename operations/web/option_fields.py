"""Form fields of the options of steps."""

from collections.abc import Mapping
from typing import Any

from django import forms

from edges.fields import WholeNumber
from operations.steps.options import (
    ChoiceOption,
    DurationOption,
    NumberOption,
    StepOption,
    SwitchOption,
    TextOption,
)

MINUTE_S = 60


def name_of(option: StepOption) -> str:
    """Returns the name of its field. People give durations in minutes."""
    is_duration = isinstance(option, DurationOption)
    return f"{option.name.removesuffix('_s')}_min" if is_duration else option.name


def field_of(option: StepOption) -> forms.Field:
    match option:
        case TextOption():
            return forms.CharField(required=False, max_length=option.longest, label=option.label)
        case ChoiceOption():
            return forms.ChoiceField(required=False, choices=option.choices, label=option.label)
        case SwitchOption():
            return forms.BooleanField(required=False, label=option.label)
        case NumberOption():
            return WholeNumber(label=option.label, min_value=option.least, max_value=option.most, initial=option.usual)
        case DurationOption():
            least, most = option.least_s // MINUTE_S, option.most_s // MINUTE_S
            return WholeNumber(required=option.is_required, label=option.label, min_value=least, max_value=most)


def value_of(option: StepOption, cleaned: Mapping[str, Any]) -> Any:
    """Returns its value in the options of an operation. A form without its field gives the default."""
    if (name := name_of(option)) not in cleaned:
        return option.default
    is_duration = isinstance(option, DurationOption) and cleaned[name] is not None
    return cleaned[name] * MINUTE_S if is_duration else cleaned[name]


def shown_value(option: StepOption, value: Any) -> Any:
    """Returns what its field shows."""
    return value // MINUTE_S if isinstance(option, DurationOption) else value
