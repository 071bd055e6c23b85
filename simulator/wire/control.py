"""The simulator's own paths, outside of Kubernetes: faults, churn, the request log, and targets. Loopback only."""

import dataclasses
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from simulator.actors.churn import Churn
from simulator.faults import FAULTS
from simulator.faults.board import Board, UnknownFault, build
from simulator.request_log import RequestLog
from simulator.store import Store
from simulator.wire.targets import targets

MOST_CHURN = 1000.0
LOOPBACK = {"127.0.0.1", "::1", "testclient"}


class Control:
    def __init__(self, store: Store, board: Board, log: RequestLog, churn: Churn | None = None) -> None:
        self.store = store
        self.board = board
        self.log = log
        self.churn = churn

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/simulator/faults", self.faults, methods=["GET", "POST", "DELETE"]),
                Route("/simulator/requests", self.requests),
                Route("/simulator/targets", self.targets),
                Route("/simulator/churn", self.stir, methods=["POST"]),
                Route("/simulator/outage", self.one("api_gone"), methods=["POST"]),
                Route("/simulator/slow", self.one("slow_api"), methods=["POST"]),
                Route("/simulator/errors", self.one("error_500"), methods=["POST"]),
                Route("/simulator/expire", self.one("gone_410"), methods=["POST"]),
            ]
        )

    async def requests(self, request: Request) -> Response:
        return JSONResponse(self.log.since(int(request.query_params.get("since", "0"))))

    async def targets(self, _request: Request) -> Response:
        return JSONResponse(targets(self.store))

    async def faults(self, request: Request) -> Response:
        if not _is_local(request):
            return JSONResponse({"error": "only from this machine"}, 403)
        if request.method == "POST":
            body = await request.json()
            return self._put(str(body.pop("key", "")), body)
        if request.method == "DELETE":
            settings = dict(request.query_params)
            key = settings.pop("key", "")
            if settings:
                self.board.end(key, settings)
            else:
                self.board.clear(key)
        return JSONResponse(self._listing())

    async def stir(self, request: Request) -> Response:
        if not _is_local(request):
            return JSONResponse({"error": "only from this machine"}, 403)
        per_s = (await request.json()).get("per_s")
        if self.churn is None or not isinstance(per_s, int | float) or not 0 <= per_s <= MOST_CHURN:
            return JSONResponse({"error": f"a fleet and a per_s from 0 to {MOST_CHURN:.0f}"}, 400)
        self.churn.ask(float(per_s))
        return JSONResponse({"per_s": per_s})

    def one(self, key: str) -> Any:
        async def put(request: Request) -> Response:
            if not _is_local(request):
                return JSONResponse({"error": "only from this machine"}, 403)
            return self._put(key, await request.json() if await request.body() else {})

        return put

    def _put(self, key: str, settings: dict[str, Any]) -> Response:
        try:
            self.board.put(build(FAULTS, key, settings))
        except UnknownFault as error:
            return JSONResponse({"error": str(error)}, 400)
        return JSONResponse(self._listing(), 201)

    def _listing(self) -> list[dict[str, Any]]:
        return [{"key": fault.key, **dataclasses.asdict(fault)} for fault in self.board.listing()]  # type: ignore[call-overload]


def _is_local(request: Request) -> bool:
    return request.client is not None and request.client.host in LOOPBACK
