"""Roles and bindings decide, in the API server's words, where the simulator is told so."""

from collections.abc import Callable

import pytest
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from simulator.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, NAMESPACE, NODE, ROLE, ROLE_BINDING
from simulator.run import Simulation
from simulator.store import Store
from tests.simulator.wire.kubectl import Kubectl
from tests.simulator.wire.objects import a_node

WHO = "system:serviceaccount:quarterdeck:quarterdeck"
SUBJECT = {"kind": "ServiceAccount", "name": "quarterdeck", "namespace": "quarterdeck"}


@pytest.fixture(scope="module")
def guarded(start: Callable[..., Simulation]) -> Simulation:
    simulation = start("--authorization", "rbac")
    store = simulation.store
    store.create(NAMESPACE, {"metadata": {"name": "shop"}})
    store.seed(NODE, a_node("gpu-1"))
    nodes = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}]
    named = [{"apiGroups": [""], "resources": ["nodes"], "resourceNames": ["gpu-1"], "verbs": ["get", "patch"]}]
    _grant(store, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, nodes + named, "")
    pods = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    ]
    _grant(store, ROLE, ROLE_BINDING, pods, "shop")
    return simulation


def _grant(store: Store, role: object, binding: object, rules: list[object], namespace: str) -> None:
    metadata = {"name": "quarterdeck"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role.name, "name": "quarterdeck"}  # type: ignore[attr-defined]
    store.create(role, {"metadata": metadata, "rules": rules}, namespace)  # type: ignore[arg-type]
    bound = {"metadata": metadata, "subjects": [SUBJECT], "roleRef": reference}
    store.create(binding, bound, namespace)  # type: ignore[arg-type]


@pytest.fixture
def core(guarded: Simulation) -> client.CoreV1Api:
    return client.CoreV1Api(config.new_client_from_config(str(guarded.kubeconfig), context="quarterdeck-rbac"))


def test_what_a_role_grants_is_allowed(core: client.CoreV1Api) -> None:
    core.patch_node("gpu-1", {"metadata": {"labels": {"held": "true"}}})

    assert [node.metadata.labels for node in core.list_node().items] == [{"held": "true"}]
    assert core.list_namespaced_pod("shop").items == []


def test_a_verb_that_no_rule_names_is_forbidden(core: client.CoreV1Api) -> None:
    said = _forbidden(lambda: core.delete_node("gpu-1"))

    assert f'nodes \\"gpu-1\\" is forbidden: User \\"{WHO}\\" cannot delete resource \\"nodes\\"' in said
    assert 'in API group \\"\\" at the cluster scope' in said


def test_a_rule_for_one_name_is_not_for_another(core: client.CoreV1Api) -> None:
    said = _forbidden(lambda: core.patch_node("gpu-2", {}))

    assert 'nodes \\"gpu-2\\" is forbidden' in said


def test_a_role_holds_in_its_namespace_only(core: client.CoreV1Api) -> None:
    elsewhere = _forbidden(lambda: core.list_namespaced_pod("default"))
    everywhere = _forbidden(core.list_pod_for_all_namespaces)

    assert 'cannot list resource \\"pods\\" in API group \\"\\" in the namespace \\"default\\"' in elsewhere
    assert "at the cluster scope" in everywhere


def test_a_subresource_is_a_right_of_its_own(core: client.CoreV1Api) -> None:
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="web-0"))

    with pytest.raises(ApiException) as caught:
        core.create_namespaced_pod_eviction("web-0", "shop", eviction)
    said = _forbidden(lambda: core.read_namespaced_pod_log("web-0", "shop"))

    assert caught.value.status == 404
    assert 'cannot get resource \\"pods/log\\"' in said


def test_an_unknown_token_is_401(guarded: Simulation) -> None:
    api = config.new_client_from_config(str(guarded.kubeconfig))
    api.configuration.api_key = dict.fromkeys(api.configuration.api_key, "Bearer stolen")
    api.configuration.refresh_api_key_hook = None

    with pytest.raises(ApiException) as caught:
        client.CoreV1Api(api).list_node()

    assert (caught.value.status, '"reason":"Unauthorized"' in caught.value.body) == (401, True)


def test_a_self_review_tells_beforehand(guarded: Simulation, core: client.CoreV1Api) -> None:
    reviews = client.AuthorizationV1Api(core.api_client)

    answers = [_may(reviews, verb) for verb in ("list", "delete")]

    assert answers == [True, False]


def _may(reviews: client.AuthorizationV1Api, verb: str) -> bool:
    wanted = client.V1ResourceAttributes(verb=verb, resource="nodes")
    spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=wanted)
    asked = client.V1SelfSubjectAccessReview(spec=spec)
    return bool(reviews.create_self_subject_access_review(asked).status.allowed)


@pytest.mark.needs_kubectl
def test_kubectl_acts_for_the_account_of_its_context(guarded: Simulation) -> None:
    kubectl = Kubectl(guarded.kubeconfig, context="quarterdeck-rbac")

    listed = kubectl.says("get", "nodes", "-o", "name")
    refused = kubectl.refuses("delete", "node", "gpu-1")

    assert listed == "node/gpu-1\n"
    assert "Error from server (Forbidden)" in refused


@pytest.mark.needs_kubectl
def test_kubectl_asks_what_it_may(guarded: Simulation) -> None:
    kubectl = Kubectl(guarded.kubeconfig, context="quarterdeck-rbac")

    assert kubectl.says("auth", "can-i", "list", "nodes").strip() == "yes"
    assert kubectl.run("auth", "can-i", "delete", "nodes").stdout.strip() == "no"


def _forbidden(call: Callable[[], object]) -> str:
    with pytest.raises(ApiException) as caught:
        call()
    assert caught.value.status == 403
    return str(caught.value.body)


@pytest.mark.needs_kubectl
def test_kubectl_creates_the_rights_it_then_has(guarded: Simulation) -> None:
    """Recent kubectl writes these requests in protobuf."""
    admin, account = Kubectl(guarded.kubeconfig), Kubectl(guarded.kubeconfig, context="quarterdeck-rbac")
    before = account.refuses("get", "configmaps", "-n", "later")

    admin.says("create", "namespace", "later")
    admin.says("create", "configmap", "told", "-n", "later", "--from-literal=a=b")
    admin.says("create", "role", "reader", "-n", "later", "--verb=get,list", "--resource=configmaps")
    admin.says(
        "create", "rolebinding", "reader", "-n", "later", "--role=reader", "--serviceaccount=quarterdeck:quarterdeck"
    )

    assert "forbidden" in before
    assert account.says("get", "configmap", "told", "-n", "later", "-o", "jsonpath={.data.a}") == "b"
