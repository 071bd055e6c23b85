"""One request, read: who asks for what, with which body."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import yaml

from simulator.rbac import User
from simulator.refusals import bad_request, unsupported_media
from simulator.wire import protobuf
from simulator.wire.paths import Target

ACCEPTED = "application/json, application/yaml"


@dataclass(frozen=True, slots=True)
class Ask:
    method: str
    path: str
    query_string: str
    headers: dict[str, str]
    body: bytes
    user: User
    target: Target | None = None

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.query_string, keep_blank_values=True))

    def flag(self, name: str) -> bool:
        return self.query.get(name, "") in {"true", "1", "True"}

    def number(self, name: str) -> int:
        text = self.query.get(name) or "0"
        if not text.lstrip("-").isdigit():
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        return int(text)

    @property
    def is_dry_run(self) -> bool:
        asked = self.query.get("dryRun", "")
        if asked not in {"", "All"}:
            raise bad_request(f'PatchOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: "{asked}"')
        return asked == "All"

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip()

    @property
    def accept(self) -> str:
        return self.headers.get("accept", "*/*")

    def json(self) -> Any:
        """:raises Refused: 415 or 400."""
        kind = self.content_type or "application/json"
        try:
            if kind == "application/json" or kind.endswith("-patch+json"):
                return json.loads(self.body)
            if kind == protobuf.CONTENT_TYPE:
                return protobuf.decode(self.body)
            if kind in {"application/yaml", "application/apply-patch+yaml"}:
                return yaml.safe_load(self.body)
        except protobuf.ProtobufError as error:
            raise unsupported_media(ACCEPTED) from error
        except (ValueError, yaml.YAMLError) as error:
            raise bad_request(f"the object provided is unrecognized (must be of type JSON or YAML): {error}") from error
        raise unsupported_media(ACCEPTED)

    def mapping(self) -> dict[str, Any]:
        """The body as an object. :raises Refused: 415 or 400."""
        body = self.json()
        if not isinstance(body, dict):
            raise bad_request("the object provided is unrecognized (must be of type object)")
        return body

    def options(self) -> dict[str, Any]:
        """The DeleteOptions of a DELETE; empty when it has no body."""
        if not self.body:
            return {}
        options = self.json()
        return options if isinstance(options, dict) else {}
