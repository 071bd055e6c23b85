"""Readings for pages: the value and its age, or the reason for a missing value."""

from dataclasses import dataclass

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from health.sources.readings import MetricReading, ReadingState

WITHOUT_VALUE = {
    ReadingState.NOT_EXPORTED: "not exported",
    ReadingState.NOT_APPLICABLE: "n/a",
    ReadingState.NEVER: "never seen",
    ReadingState.SOURCE_SILENT: "no data",
    ReadingState.NO_SOURCE: "no source",
}
# How a reading looks, by its state: `kept` is a value that is not of now.
READING_CLASSES = {"fresh": "", "kept": "kept", "not-exported": "na", "not-applicable": "na"}


@dataclass(frozen=True)
class ReadingCell:
    """A value in a device's line, or the reason for a missing value."""

    state: str
    words: str
    beside: str = ""  # secondary text of the cell
    title: str = ""

    @property
    def html(self) -> SafeString:
        """Returns the HTML. A table has hundreds of cells, so no template is used."""
        looks = READING_CLASSES.get(self.state, "nodata")
        said = f"Not current. {self.title}".strip() if self.state == "kept" else self.title
        title = format_html(' title="{}"', said) if said else ""
        beside = format_html(' <span class="faint">{}</span>', self.beside) if self.beside else ""
        return format_html("<span{}{}>{}{}</span>", looks and mark_safe(f' class="{looks}"'), title, self.words, beside)  # noqa: S308 - a class of ours


def cell_of(reading: MetricReading, form: str, *, read=None, beside: str = "", title: str = "") -> ReadingCell:
    if reading.value is None:
        return ReadingCell(reading.state.value, WITHOUT_VALUE.get(reading.state, "no data"), title=title)
    return ReadingCell(
        reading_style(reading), form.format(read(reading.value) if read else reading.value), beside, title
    )


def reading_style(reading: MetricReading) -> str:
    """Returns the cell's style; `kept` is a value that is not current."""
    return "fresh" if reading.is_fresh else "kept"


def gib(mib: float) -> str:
    return f"{mib / 1024:.1f}"
