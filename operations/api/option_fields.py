"""REST fields of the options of steps."""

from typing import Any

from rest_framework import serializers

from operations.steps.options import (
    ChoiceOption,
    DurationOption,
    NumberOption,
    StepOption,
    SwitchOption,
    TextOption,
)


def field_of(option: StepOption) -> serializers.Field:
    shared: dict[str, Any] = {"required": False, "default": option.default, "help_text": option.help}
    match option:
        case TextOption():
            return serializers.CharField(max_length=option.longest, allow_blank=True, **shared)
        case ChoiceOption():
            return serializers.ChoiceField(choices=option.choices, allow_blank=True, **shared)
        case SwitchOption():
            return serializers.BooleanField(**shared)
        case NumberOption():
            return serializers.IntegerField(min_value=option.least, max_value=option.most, **shared)
        case DurationOption():
            return serializers.IntegerField(
                min_value=option.least_s, max_value=option.most_s, allow_null=True, **shared
            )
