"""What no client should send is answered with a Status that says so, and breaks nothing."""

import http.client
import json
from urllib.parse import urlsplit

import pytest

from simulator.kinds import NODE
from simulator.run import Simulation
from tests.patience import PATIENCE_S
from tests.simulator.wire.objects import a_node

JSON, MERGE = "application/json", "application/merge-patch+json"
JSON_PATCH, STRATEGIC = "application/json-patch+json", "application/strategic-merge-patch+json"
NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
SETS, BUDGETS = "/apis/apps/v1/namespaces/default/daemonsets", "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ODD_SELECTOR = '{"selector":{"matchExpressions":[{"key":"a"}]},"template":{"spec":{"containers":[{}]}}}'

CASES = [
    ("POST", NODES, "[]", JSON, 400),
    ("POST", NODES, "{", JSON, 400),
    ("POST", NODES, "{}", JSON, 422),
    ("POST", NODES, '{"kind":"Pod","metadata":{"name":"a"}}', JSON, 400),
    ("POST", NODES, '{"metadata":[]}', JSON, 400),
    ("POST", NODES, '{"metadata":{"name":5}}', JSON, 400),
    ("POST", NODES, '{"metadata":{"name":"a","labels":[]}}', JSON, 400),
    ("POST", NODES, '{"metadata":{"name":"a"},"spec":[]}', JSON, 400),
    ("POST", NODES, '{"metadata":{"name":"a"},"status":{"conditions":5,"capacity":[]}}', JSON, 400),
    ("POST", NODES, "name: a", "text/csv", 415),
    ("POST", PODS, '{"metadata":{"name":"a"},"spec":{"containers":[1]}}', JSON, 400),
    ("POST", PODS, '{"metadata":{"name":"a"},"spec":{"containers":{"a":1}}}', JSON, 400),
    ("POST", PODS, '{"metadata":{"name":"a"}}', JSON, 422),
    ("POST", SETS, '{"metadata":{"name":"a"}}', JSON, 422),
    ("POST", SETS, f'{{"metadata":{{"name":"a"}},"spec":{ODD_SELECTOR}}}', JSON, 422),
    ("POST", BUDGETS, '{"metadata":{"name":"a"},"spec":{"minAvailable":"x%"}}', JSON, 422),
    ("POST", BUDGETS, '{"metadata":{"name":"b"},"spec":{"minAvailable":-1}}', JSON, 422),
    ("POST", DEFINITIONS, '{"metadata":{"name":"a"}}', JSON, 422),
    ("POST", DEFINITIONS, '{"metadata":{"name":"a"},"spec":{"versions":5}}', JSON, 400),
    ("POST", BINDINGS, '{"metadata":{"name":"a"}}', JSON, 422),
    ("POST", BINDINGS, '{"metadata":{"name":"a"},"roleRef":[],"subjects":5}', JSON, 400),
    ("POST", REVIEWS, "[]", JSON, 400),
    ("POST", f"{PODS}/x/eviction", "[]", JSON, 400),
    ("POST", f"{PODS}/x/eviction", "{}", JSON, 400),
    ("POST", f"{PODS}/x/binding", "{}", JSON, 400),
    ("PUT", f"{NODES}/gpu-1", "5", JSON, 400),
    ("PUT", f"{NODES}/gpu-1", '{"metadata":{"name":"gpu-2"}}', JSON, 400),
    ("PATCH", NODES, "{}", MERGE, 405),
    ("PATCH", f"{NODES}/gpu-1", "{}", "text/plain", 415),
    ("PATCH", f"{NODES}/gpu-1", "[]", MERGE, 400),
    ("PATCH", f"{NODES}/gpu-1", "{}", JSON_PATCH, 400),
    ("PATCH", f"{NODES}/gpu-1", '[{"op":"add"}]', JSON_PATCH, 422),
    ("PATCH", f"{NODES}/gpu-1", '[{"op":"move","path":"/a"}]', JSON_PATCH, 422),
    ("PATCH", f"{NODES}/gpu-1", '[{"op":"replace","path":"","value":5}]', JSON_PATCH, 400),
    ("PATCH", f"{NODES}/gpu-1", '{"metadata":{"labels":5}}', MERGE, 422),
    ("PATCH", f"{NODES}/gpu-1", '{"metadata":{"labels":{"a":true}}}', MERGE, 422),
    ("PATCH", f"{NODES}/gpu-1", '{"spec":{"taints":5}}', STRATEGIC, 422),
    ("DELETE", f"{NODES}/gpu-1?gracePeriodSeconds=x", "", JSON, 400),
    ("DELETE", f"{NODES}/gpu-9", "", JSON, 404),
    ("GET", f"{NODES}?limit=x", "", JSON, 400),
    ("GET", f"{NODES}?labelSelector=%20%3D", "", JSON, 400),
    ("GET", f"{NODES}?resourceVersion=x", "", JSON, 422),
    ("GET", f"{NODES}?watch=1&resourceVersion=x", "", JSON, 422),
    ("GET", f"{NODES}?watch=1&timeoutSeconds=x", "", JSON, 400),
    ("GET", "/api/v1//nodes", "", JSON, 404),
    ("GET", "/apis/apps/v1/namespaces/default/deployments/x/scale", "", JSON, 404),
    ("OPTIONS", NODES, "", JSON, 405),
]


@pytest.fixture(scope="module")
def address(simulation: Simulation) -> str:
    simulation.store.seed(NODE, a_node("gpu-1"))
    return urlsplit(simulation.url).netloc


@pytest.mark.parametrize(("method", "path", "body", "content_type", "code"), CASES)
def test_it_is_refused(address: str, method: str, path: str, body: str, content_type: str, code: int) -> None:
    answered, status = _ask(address, method, path, body, content_type)

    assert (answered, status["kind"], status["status"], status["code"]) == (code, "Status", "Failure", code)
    assert status["message"]


def test_an_unquoted_true_is_no_label(address: str) -> None:
    body = '{"metadata":{"name":"a","labels":{"nvidia.com/gpu-driver-upgrade.skip":true}}}'

    _, status = _ask(address, "POST", NODES, body, JSON)

    assert "cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string" in status["message"]


def _ask(address: str, method: str, path: str, body: str, content_type: str) -> tuple[int, dict[str, object]]:
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    connection.request(method, path, body or None, {"content-type": content_type})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())
