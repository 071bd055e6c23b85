"""The filtered table of GPUs as a file: all that matches, in its order, sent as it is read."""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial

from asgiref.sync import sync_to_async
from django.http import HttpResponse, StreamingHttpResponse
from django.utils import timezone

from edges.requests import PersonRequest
from health.gpus.asking import GpuFilter
from health.gpus.narrowing import TooWide
from health.gpus.reading import AT_ONCE, GpuSeen, GpuTable, table_of
from health.gpus.writing import HEAD, as_csv, line, spelt, written
from people.rights import Permission, scope_of

MOST_ROWS = 50_000
Write = Callable[[Iterable[GpuSeen]], str]
FileParts = Callable[[GpuTable], AsyncIterator[str]]


def csv_file(request: PersonRequest) -> HttpResponse | StreamingHttpResponse:
    return _file(request, "csv", "text/csv; charset=utf-8", _as_csv)


def json_file(request: PersonRequest) -> HttpResponse | StreamingHttpResponse:
    return _file(request, "json", "application/json", _as_json)


def _file(
    request: PersonRequest, kind: str, content_type: str, parts: FileParts
) -> HttpResponse | StreamingHttpResponse:
    if scope_of(request.user, Permission.SEE).nowhere:  # an empty file would read as if there were no GPU
        return _refused("You have no role yet. Ask an admin of this Quarterdeck for one.", status=403)
    now = timezone.now()
    try:
        table = table_of(request.user, GpuFilter.read(request.GET), now=now)
    except TooWide as refusal:
        return _refused(str(refusal))
    if len(table) > MOST_ROWS:
        sentence = f"{len(table)} GPUs match, and a file has {MOST_ROWS} at most: choose a cluster or a pool, too."
        return _refused(sentence)
    response = StreamingHttpResponse(parts(table), content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="gpus-{now:%Y%m%d-%H%M%S}.{kind}"'
    response["Cache-Control"] = "private, no-store"
    return response


def _refused(sentence: str, *, status: int = 400) -> HttpResponse:
    return HttpResponse(sentence, status=status, content_type="text/plain; charset=utf-8")


async def _as_csv(table: GpuTable) -> AsyncIterator[str]:
    yield as_csv([HEAD])
    async for text in _pieces(table, lambda rows: as_csv(map(line, rows))):
        yield text


async def _as_json(table: GpuTable) -> AsyncIterator[str]:
    yield f'{{"at": "{spelt(table.now)}", "count": {len(table)}, "gpus": ['
    between = ""
    async for text in _pieces(table, lambda rows: ",\n".join(json.dumps(written(row)) for row in rows)):
        if text:
            yield between + text
            between = ",\n"
    yield "]}\n"


async def _pieces(table: GpuTable, write: Write) -> AsyncIterator[str]:
    """Rows are read in the thread of the request, which the database's connection is of."""
    for start in range(0, len(table), AT_ONCE):
        yield await sync_to_async(partial(_piece, table, write, start))()


def _piece(table: GpuTable, write: Write, start: int) -> str:
    return write(table.rows(start, start + AT_ONCE))
