"""Form fields that read numbers and times in ASCII digits only: Python also reads those of other scripts."""

from typing import Any

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from edges.digits import SENTENCE

DAY_PATTERN = r"\d{4}-\d{2}-\d{2}"
TIME_PATTERN = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?"
INSTANT_PATTERN = rf"{DAY_PATTERN}[T ]{TIME_PATTERN}.*"
INSTANT_EXAMPLE = "2026-11-30 08:00"


class InAscii(forms.Field):
    """Refuses digits of other scripts. The field that parses the text comes behind it."""

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and not value.isascii():
            raise ValidationError(SENTENCE, code="invalid")
        return super().to_python(value)


class WholeNumber(InAscii, forms.IntegerField):
    pass


class DecimalAmount(InAscii, forms.DecimalField):
    pass


def written_as(example: str, pattern: str) -> forms.TextInput:
    """Returns a text field. A browser's own date field follows its locale, with month names and a 12-hour clock."""
    return forms.TextInput(
        {"placeholder": example, "pattern": pattern, "title": f"As {example}", "autocomplete": "off"}
    )


class DateAndTime(InAscii, forms.DateTimeField):
    """A date and time in UTC on a 24-hour clock; an offset in the text is applied."""

    default_error_messages = {"invalid": "Enter a date and time such as 2026-11-30 08:00."}

    def __init__(self, **given: Any) -> None:
        super().__init__(input_formats=(), widget=written_as(INSTANT_EXAMPLE, INSTANT_PATTERN), **given)


class Day(InAscii, forms.DateField):
    default_error_messages = {"invalid": "Enter a date such as 2026-11-30."}

    def __init__(self, **given: Any) -> None:
        super().__init__(input_formats=("%Y-%m-%d",), widget=written_as("2026-11-30", DAY_PATTERN), **given)


class ClockTime(InAscii, forms.TimeField):
    default_error_messages = {
        "invalid": "Enter a time such as 02:00.",
        "required": "Enter a time such as 02:00.",
    }

    def __init__(self, **given: Any) -> None:
        super().__init__(input_formats=("%H:%M", "%H:%M:%S"), widget=written_as("08:00", TIME_PATTERN), **given)


class Reason(forms.CharField):
    """A text of at most 1,000 characters; a line break counts as one, although a browser sends two."""

    def __init__(self, **given: Any) -> None:
        super().__init__(max_length=1000, widget=forms.Textarea({"rows": 2}), **given)

    def to_python(self, value: Any) -> str:
        return (super().to_python(value) or "").replace("\r\n", "\n")


def refuse(form: forms.BaseForm, name: str, sentence: str) -> None:
    """Adds an error to the field of this name, or to the form; skips a sentence that is there already."""
    field = name if name in form.fields else None
    if sentence not in form.errors.get(field or NON_FIELD_ERRORS, ()):
        form.add_error(field, sentence)
