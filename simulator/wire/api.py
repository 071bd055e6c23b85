"""The Kubernetes API: one ask in, one answer out."""

from collections.abc import Callable

from simulator.kinds import Kind
from simulator.pod_ends import PodEnds
from simulator.refusals import Refused, path_not_found
from simulator.store import Store
from simulator.wire import discovery, eviction, openapi, pod_output, reviews, scale, writing
from simulator.wire.access import Access, act_of, with_selected_name
from simulator.wire.answers import Answer, of_json, of_text
from simulator.wire.asks import Ask
from simulator.wire.closing import Closing
from simulator.wire.listing import list_objects
from simulator.wire.paths import Target
from simulator.wire.table import single_row, wants_table
from simulator.wire.watching import watch_objects

HEALTH = {"/healthz", "/livez", "/readyz"}
REVIEW_GROUPS = {"authentication.k8s.io", "authorization.k8s.io"}


class Api:
    def __init__(self, store: Store, access: Access, ends: PodEnds, *, closing: Closing) -> None:
        self.store = store
        self.access = access
        self.ends = ends
        self.closing = closing

    def answer(self, ask: Ask) -> Answer:
        """:raises Refused: with the Status to send."""
        act = act_of(ask.method, ask.path, ask.target, is_watch=ask.flag("watch"))
        act = with_selected_name(act, ask.query.get("fieldSelector", ""))
        self.access.check(ask.user, act)
        if ask.target is None:
            return self._path(ask)
        if ask.target.group in REVIEW_GROUPS:
            return self._review(ask, ask.target)
        kind = self.store.find_kind(ask.target.group, ask.target.version, ask.target.plural)
        if ask.target.subresource:
            return self._subresource(ask, kind, ask.target)
        return self._object(ask, kind, ask.target) if ask.target.name else self._collection(ask, kind, ask.target)

    def _path(self, ask: Ask) -> Answer:
        path = "/" + ask.path.strip("/")
        if path in HEALTH or path.startswith(("/livez/", "/readyz/")):
            return of_text("ok")
        if path == "/version":
            return of_json(discovery.VERSION)
        found = self._discovery(ask, path) or openapi.answer(self.store, ask, path)
        if found is None:
            raise path_not_found()
        return found

    def _discovery(self, ask: Ask, path: str) -> Answer | None:
        kinds = tuple(self.store.kinds.values())
        version = discovery.wants_aggregated(ask.accept)
        parts = path.strip("/").split("/")
        if parts in (["api"], ["apis"]) and version:
            return discovery.aggregated(kinds, version, core=parts == ["api"])
        match parts:
            case ["api"]:
                return discovery.api_versions(ask.headers.get("host", ""))
            case ["apis"]:
                return discovery.group_list(kinds)
            case ["api", version]:
                return discovery.resource_list(kinds, "", version)
            case ["apis", group]:
                return discovery.one_group(kinds, group)
            case ["apis", group, version]:
                return discovery.resource_list(kinds, group, version)
        return None

    def _review(self, ask: Ask, target: Target) -> Answer:
        if ask.method == "POST" and target.plural == "selfsubjectreviews":
            return reviews.self_review(ask.user)
        if ask.method == "POST" and target.plural == "selfsubjectaccessreviews":
            return reviews.access_review(self.access.may, ask.user, ask.mapping())
        if ask.method == "POST" and target.plural == "selfsubjectrulesreviews":
            return reviews.rules_review(self.store, ask.user, ask.mapping())
        raise path_not_found()

    def _collection(self, ask: Ask, kind: Kind, target: Target) -> Answer:
        match ask.method:
            case "GET" | "HEAD" if ask.flag("watch"):
                return watch_objects(self.store, ask, kind, target, closing=self.closing)
            case "GET" | "HEAD":
                return list_objects(self.store, ask, kind, target)
            case "POST":
                return writing.create(self.store, ask, kind, target)
            case "DELETE":
                return writing.delete_collection(self.store, ask, kind, target)
        raise not_allowed()

    def _object(self, ask: Ask, kind: Kind, target: Target) -> Answer:
        match ask.method:
            case "GET" | "HEAD":
                return self._read(ask, kind, target)
            case "PUT":
                return writing.update(self.store, ask, kind, target)
            case "PATCH":
                return writing.patch(self.store, ask, kind, target)
            case "DELETE":
                return writing.delete(self.store, ask, kind, target)
        raise not_allowed()

    def _read(self, ask: Ask, kind: Kind, target: Target) -> Answer:
        record = self.store.record(kind, target.name, target.namespace)
        if wants_table(ask.accept):
            return of_json(single_row(self.store, kind, record, ask.query.get("includeObject", "")))
        return Answer(body=record.json)

    def _subresource(self, ask: Ask, kind: Kind, target: Target) -> Answer:
        serve = self._served(ask, kind, target).get((target.subresource, ask.method))
        if serve is None or target.subresource not in discovery.subresources(kind):
            raise path_not_found()
        return serve()

    def _served(self, ask: Ask, kind: Kind, target: Target) -> dict[tuple[str, str], Callable[[], Answer]]:
        store, ends = self.store, self.ends
        return {
            ("status", "GET"): lambda: self._read(ask, kind, target),
            ("status", "PUT"): lambda: writing.update(store, ask, kind, target),
            ("status", "PATCH"): lambda: writing.patch(store, ask, kind, target),
            ("scale", "GET"): lambda: scale.read(store, kind, target),
            ("scale", "PUT"): lambda: scale.write(store, ask, kind, target),
            ("scale", "PATCH"): lambda: scale.write(store, ask, kind, target),
            ("finalize", "PUT"): lambda: writing.update(store, ask, kind, target),
            ("eviction", "POST"): lambda: eviction.evict(store, ask, target),
            ("binding", "POST"): lambda: eviction.bind(store, ask, target),
            ("log", "GET"): lambda: pod_output.log(store, ends, ask, target, closing=self.closing),
            ("proxy", "GET"): lambda: pod_output.proxy(store, ends, target, closing=self.closing),
        }


def not_allowed() -> Refused:
    return Refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
