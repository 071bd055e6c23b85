"""Form fields that read numbers in ASCII digits only: Python's own `int` also reads those of other scripts."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from edges.digits import SENTENCE


class WholeNumber(forms.IntegerField):
    def to_python(self, value: Any) -> int | None:
        return super().to_python(in_ascii(value))


class DecimalAmount(forms.DecimalField):
    def to_python(self, value: Any) -> Any:
        return super().to_python(in_ascii(value))


def in_ascii(value: Any) -> Any:
    if isinstance(value, str) and not value.isascii():
        raise ValidationError(SENTENCE, code="invalid")
    return value
