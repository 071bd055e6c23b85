"""What the schema promises, held against the API with requests that fit it and requests that do not."""

import os
from collections import defaultdict
from io import StringIO

import hypothesis.core
import pytest
import schemathesis
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.vendor import pretty
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.make import a_token, a_user
from tests.variants import nightly_but_first

# Its import silences hypothesis's printer in this process: failing examples would be shown without their values.
hypothesis.core.RepresentationPrinter = pretty.RepresentationPrinter

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SCHEMA = schemathesis.openapi.from_wsgi("/api/v1/schema?format=json", get_wsgi_application())
EXAMPLES = int(os.environ.get("QUARTERDECK_TEST_SCHEMA_EXAMPLES", "2"))  # of each method of a path; more at night
READING_FIRST = ("get", "post", "put", "patch", "delete")
MODES = tuple(GenerationMode)  # requests that fit the schema, and requests that do not
PARTS = defaultdict(list)
for found in SCHEMA.get_all_operations():
    PARTS[found.ok().definition.raw["tags"][0]].append(found.ok())
FIRST_MODE = {part: number for number, part in enumerate(sorted(PARTS))}  # parts of one operation alternate


@pytest.fixture
def keep_connection():
    """As Django's own test client: what ends a request must not end the test's transaction."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.mark.hypothesis
@pytest.mark.parametrize("turn", nightly_but_first(range(len(MODES))))
@pytest.mark.parametrize("part", sorted(PARTS))
def test_no_request_breaks_it(part, turn, there, keep_connection):
    """Each operation in one mode by day, and in the other at night."""
    headers = {"Authorization": f"Bearer {a_token(a_user(role='admin'))}"}

    operations = sorted(PARTS[part], key=lambda operation: READING_FIRST.index(operation.method))
    for number, operation in enumerate(operations, FIRST_MODE[part] + turn):
        mode = MODES[number % len(MODES)]
        known = {name: there[name] for name in there if f"{{{name}}}" in operation.path}
        ask(operation.as_strategy(mode, path_parameters=known or None), headers)


def ask(cases, headers: dict[str, str]) -> None:
    """A few times, each with another request."""

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def once(case):
        case.validate_response(case.call(headers=headers), checks=CHECKS)

    once()


def test_the_schema_is_valid_and_nothing_in_it_was_guessed():
    call_command("spectacular", "--fail-on-warn", "--validate", stdout=StringIO())
