"""All matching GPUs in one streamed file, in their order, for the page and REST."""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

from edges.csv_text import as_csv
from health.gpus.serializer import gpu_data, head, iso_time, line
from health.gpus.table import AT_ONCE, GpuSeen, GpuTable

MOST_ROWS = 50_000
Write = Callable[[Iterable[GpuSeen]], str]


class TooLong(Exception):
    """More GPUs match than a file may have; its sentence gives the recommended action."""

    def __init__(self, rows: int) -> None:
        super().__init__(f"{rows} GPUs match. A file has at most {MOST_ROWS} rows: add a filter by cluster or pool.")


def csv_of(table: GpuTable) -> StreamingHttpResponse:
    """Streams the table as CSV.

    :raises TooLong: when too many GPUs match
    """
    return _file(table, "csv", "text/csv; charset=utf-8", _stream_csv(table))


def json_of(table: GpuTable) -> StreamingHttpResponse:
    """Streams the table as JSON.

    :raises TooLong: when too many GPUs match
    """
    return _file(table, "json", "application/json", _stream_json(table))


def _file(table: GpuTable, kind: str, content_type: str, parts: AsyncIterator[str]) -> StreamingHttpResponse:
    if len(table) > MOST_ROWS:
        raise TooLong(len(table))
    response = StreamingHttpResponse(parts, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="gpus-{table.now:%Y%m%d-%H%M%S}.{kind}"'
    response["Cache-Control"] = "private, no-store"
    return response


async def _stream_csv(table: GpuTable) -> AsyncIterator[str]:
    yield as_csv([head(table.metrics)])
    async for text in _pieces(table, lambda rows: as_csv(map(line, rows))):
        yield text


async def _stream_json(table: GpuTable) -> AsyncIterator[str]:
    yield f'{{"at": "{iso_time(table.now)}", "count": {len(table)}, "without_value": {table.without_value}, "gpus": ['
    between = ""
    async for text in _pieces(table, lambda rows: ",\n".join(json.dumps(gpu_data(row)) for row in rows)):
        if text:
            yield between + text
            between = ",\n"
    yield "]}\n"


async def _pieces(table: GpuTable, write: Write) -> AsyncIterator[str]:
    """Yields text. Rows are read in the request's thread, which owns the database connection."""
    for start in range(0, len(table), AT_ONCE):
        yield await sync_to_async(partial(_rows_as_text, table, write, start))()


def _rows_as_text(table: GpuTable, write: Write, start: int) -> str:
    return write(table.rows(start, start + AT_ONCE))
