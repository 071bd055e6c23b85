"""GET of a collection: whole or in chunks, as it is or as it was."""

from simulator.events import ENCODER
from simulator.kinds import Kind
from simulator.matching import matcher
from simulator.refusals import Cause, Refused, bad_request, invalid
from simulator.shelf import ANY_VERSION, Page, Token
from simulator.store import Store
from simulator.wire.answers import Answer, of_json
from simulator.wire.asks import Ask
from simulator.wire.paths import Target
from simulator.wire.table import rows_of, wants_table

LIST_OPTIONS = Kind("meta.k8s.io", "v1", "listoptions", "ListOptions")


def list_objects(store: Store, ask: Ask, kind: Kind, target: Target) -> Answer:
    page = read_page(store, ask, kind, target)
    if wants_table(ask.accept):
        return of_json(rows_of(store, kind, page, ask.query.get("includeObject", "")))
    return Answer(body=encoded(kind, page))


def read_page(store: Store, ask: Ask, kind: Kind, target: Target) -> Page:
    query = ask.query
    matches = matcher(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    token = _token(store, ask)
    limit = ask.number("limit")
    if query.get("resourceVersion") == "0" and not query.get("resourceVersionMatch"):
        limit = 0  # served from the watch cache, which does not chunk
    return store.page(kind, target.namespace, matches=matches, limit=limit, token=token)


def _token(store: Store, ask: Ask) -> Token | None:
    query = ask.query
    version, match, going_on = (query.get(name, "") for name in ("resourceVersion", "resourceVersionMatch", "continue"))
    _check_match(version, match, going_on)
    if going_on:
        if version not in {"", "0"}:
            raise bad_request("specifying resource version is not allowed when using continue")
        return Token.decode(going_on)
    if version and not version.isdigit():
        raise invalid(LIST_OPTIONS, "", Cause("resourceVersion", f'Invalid value: "{version}"'))
    if version and int(version) > store.version:
        raise _too_large(int(version), store.version)
    return Token(int(version), "") if match == "Exact" else Token(ANY_VERSION, "")


def _check_match(version: str, match: str, going_on: str) -> None:
    if not match:
        return
    words = ""
    if not version:
        words = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif going_on:
        words = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
    elif match not in {"Exact", "NotOlderThan"}:
        words = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
    elif match == "Exact" and version == "0":
        words = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    if words:
        raise invalid(LIST_OPTIONS, "", Cause("resourceVersionMatch", words, "FieldValueForbidden"))


def _too_large(asked: int, current: int) -> Refused:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return Refused(504, "Timeout", message, details={"causes": [cause]}, retry_after_s=1)


def encoded(kind: Kind, page: Page) -> bytes:
    """Objects are joined as the bytes they are kept in."""
    metadata: dict[str, object] = {"resourceVersion": str(page.version)}
    if page.continue_:
        metadata["continue"] = page.continue_
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    head = f'{{"kind":"{kind.name}List","apiVersion":"{kind.api_version}","metadata":'.encode()
    pieces: list[bytes | memoryview] = [head, ENCODER.encode(metadata), b',"items":[']
    # Items of built-in lists do not repeat what they are; those of custom resources do.
    typed = 1 if kind.is_custom else len(f'{{"kind":"{kind.name}","apiVersion":"{kind.api_version}",')
    opening = b"{"
    for record in page.records:
        pieces += (opening, memoryview(record.json)[typed:])
        opening = b",{"
    return b"".join((*pieces, b"]}"))
