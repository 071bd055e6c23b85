"""Lists in pages, as one consistent picture."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from kube.client.connection import Connection
from kube.client.decoder import Unread, decode_list
from kube.resources import Resource
from kube.structs import Seen

PAGE = 500
LIST_S = 60.0  # a big cluster behind a slow server takes its time for a page
S = TypeVar("S", bound=Seen)


@dataclass(frozen=True)
class Page(Generic[S]):
    items: tuple[S, ...]
    resource_version: str  # of the whole list: where a watch goes on from
    is_last: bool
    unread: tuple[Unread, ...] = ()  # what is in the list, too, and cannot be read


def list_pages(
    connection: Connection,
    resource: Resource[S],
    *,
    namespace: str = "",
    label_selector: str = "",
    field_selector: str = "",
    limit: int = PAGE,
) -> Iterator[Page[S]]:
    """The pages of one list, as of one moment.

    :raises Gone: in the middle, when the server forgot that moment: the caller starts again with a new list
    :raises ClusterError: anything else that the server says
    """
    query: dict[str, str | int] = {"limit": limit, **resource.query}
    if label_selector:
        query["labelSelector"] = label_selector
    if field_selector:
        query["fieldSelector"] = field_selector
    while True:
        body = connection.get(resource.path(namespace=namespace), query, read_s=LIST_S)
        found = decode_list(body, resource.struct)
        version, more = found.meta.resource_version, found.meta.continue_
        yield Page(found.items, version, is_last=not more, unread=found.unread)
        if not more:
            return
        query["continue"] = more
