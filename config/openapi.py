"""Common parts of the OpenAPI schema: authentication and the answers of refusals."""

from typing import Any, Literal

from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import build_bearer_security_scheme_object
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.permissions import AllowAny

from config.errors import CONTENT_TYPE
from edges.rest import IF_MATCH, ReportSerializer
from fleet.api.gone_nodes import GoneNodeSerializer

Direction = Literal["request", "response"]
WRITES = {"POST", "PUT", "PATCH", "DELETE"}
ETAG = {"ETag": {"schema": {"type": "string"}, "description": "Send it as `If-Match` of a write."}}


class WrongField(serializers.Serializer):
    field = serializers.CharField(help_text="Path of the field, such as `stages.0.name`. Blank: the whole request.")
    sentence = serializers.CharField()


class BlockerBody(ReportSerializer):
    code = serializers.CharField()
    field = serializers.CharField(help_text="Path of the field in the draft. Blank: no single field.")
    may_be_overridden = serializers.BooleanField(
        help_text="Whether `override_reason` of a start can override the blocker."
    )


class ProblemBody(serializers.Serializer):
    """RFC 9457. `detail` is for a person; `type` is for a program."""

    type = serializers.CharField(help_text="For example `urn:quarterdeck:problem:lost-race`.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    instance = serializers.CharField(help_text="The requested path.")
    request_id = serializers.CharField(help_text="Identifier of the request in the log lines.")
    errors = WrongField(many=True, required=False)  # type: ignore[assignment]
    blockers = BlockerBody(many=True, required=False)
    changed = serializers.ListField(child=serializers.CharField(), required=False)
    error = serializers.CharField(required=False, help_text="Error code of RFC 8628, of a poll for a token.")
    gone = GoneNodeSerializer(required=False, help_text="Details of a node that left its cluster (410).")


class Schema(AutoSchema):
    def get_tags(self) -> list[str]:
        return [self.path.removeprefix("/api/v1/").split("/")[0]]

    def get_override_parameters(self) -> list[Any]:
        given = super().get_override_parameters()
        if not self._compares:
            return list(given)
        sentence = "The ETag that was read. 412 if the object has changed since. Without it nothing is compared."
        return [*given, OpenApiParameter(IF_MATCH, str, OpenApiParameter.HEADER, description=sentence)]

    @property
    def _compares(self) -> bool:
        return bool(getattr(self.view, "mark_field", "")) and self.method in WRITES

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        bodies = super()._get_response_bodies(direction)
        if getattr(self.view, "mark_field", ""):
            bodies |= {code: {**body, "headers": ETAG} for code, body in bodies.items() if code in {"200", "201"}}
        for code, meaning in self._refusals():
            body = self._get_response_for_code(ProblemBody, code, [CONTENT_TYPE], direction)
            bodies.setdefault(code, {**body, "description": meaning})
        return bodies

    def _refusals(self) -> list[tuple[str, str]]:
        answers = [
            ("400", "The request is invalid; `errors` names the fields."),
            ("406", "No format in `Accept` is available."),
        ]
        is_public = any(isinstance(permission, AllowAny) for permission in self.view.get_permissions())
        if not is_public:
            answers.append(("401", "Sign in first."))
        if "{" in self.path:
            answers.append(("404", "It does not exist, or the caller may not see it."))
        if getattr(self.view, "may_be_gone", False):
            answers.append(("410", "The node left its cluster; `gone` has the time and details."))
        if self._compares:
            answers.append(("412", "It has changed since the ETag in `If-Match` was read."))
        if self.method in WRITES:
            answers += [
                ("403", "The caller lacks a permission; `detail` names the missing role and scope."),
                ("409", "Not possible in this state, or changed by someone else."),
                ("413", "The body is too large."),
                ("415", "Send JSON."),
                ("429", "Too many tries; see `Retry-After`."),
            ]
        return [*answers, ("default", "Any other error.")]


class ClosedBody(OpenApiSerializerExtension):
    """An extension that closes request bodies: unknown fields are not allowed."""

    target_class = "edges.rest.Asked"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> dict[str, Any]:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)  # noqa: SLF001 - as its documentation does
        return {**schema, "additionalProperties": False}


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = "people.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return build_bearer_security_scheme_object(header_name="Authorization", token_prefix="Bearer")  # noqa: S106


class SessionScheme(OpenApiAuthenticationExtension):
    target_class = "people.api.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        description = "Cookie of POST /api/v1/session. Writes also need the csrftoken cookie's value in X-CSRFToken."
        return {"type": "apiKey", "in": "cookie", "name": "sessionid", "description": description}
