"""Builders of rows: one pure file per kind, from struct to columns."""

from typing import Any

Columns = dict[str, Any]  # values by column
