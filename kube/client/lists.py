"""Paginated lists of one consistent snapshot."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from kube.client.connection import Connection
from kube.client.decoder import Unread, decode_list
from kube.resources import Resource
from kube.structs import Seen

PAGE = 500
LIST_S = 60.0  # a page of a big cluster behind a slow server
S = TypeVar("S", bound=Seen)


@dataclass(frozen=True)
class Page(Generic[S]):
    items: tuple[S, ...]
    resource_version: str  # of the whole list; a watch continues from here
    is_last: bool
    unread: tuple[Unread, ...] = ()  # items of the list that cannot be decoded


def list_pages(
    connection: Connection,
    resource: Resource[S],
    *,
    namespace: str = "",
    label_selector: str = "",
    field_selector: str = "",
    limit: int = PAGE,
) -> Iterator[Page[S]]:
    """Yields the pages of one list, all from one snapshot.

    :raises Gone: between pages, when the server dropped the snapshot; the caller starts a new list
    :raises ClusterError: for any other error of the server
    """
    query: dict[str, str | int] = {"limit": limit, **resource.query}
    if label_selector:
        query["labelSelector"] = label_selector
    if field_selector:
        query["fieldSelector"] = field_selector
    while True:
        body = connection.get(resource.path(namespace=namespace), query, read_s=LIST_S)
        listed = decode_list(body, resource.struct)
        version, more = listed.meta.resource_version, listed.meta.continue_
        yield Page(listed.items, version, is_last=not more, unread=listed.unread)
        if not more:
            return
        query["continue"] = more
