"""The filtered table of GPUs as a file."""

from collections.abc import Callable

from django.http import HttpResponse, StreamingHttpResponse
from django.utils import timezone

from edges.requests import PersonRequest
from health.gpus.files import TooLong, csv_of, json_of
from health.gpus.gpu_filter import GpuFilter
from health.gpus.selection import TooWide
from health.gpus.table import GpuTable, table_of
from people.rights import Permission, scope_of


def csv_file(request: PersonRequest) -> HttpResponse | StreamingHttpResponse:
    return _file(request, csv_of)


def json_file(request: PersonRequest) -> HttpResponse | StreamingHttpResponse:
    return _file(request, json_of)


def _file(
    request: PersonRequest, written: Callable[[GpuTable], StreamingHttpResponse]
) -> HttpResponse | StreamingHttpResponse:
    if scope_of(request.user, Permission.SEE).nowhere:  # an empty file would read as if there were no GPU
        return _refused("You have no role yet. Ask an admin of this Quarterdeck for one.", status=403)
    try:
        return written(table_of(request.user, GpuFilter.read(request.GET), now=timezone.now()))
    except (TooWide, TooLong) as refusal:
        return _refused(str(refusal))


def _refused(sentence: str, *, status: int = 400) -> HttpResponse:
    return HttpResponse(sentence, status=status, content_type="text/plain; charset=utf-8")
