"""What a person with kubectl does meanwhile, past Quarterdeck."""

from collections.abc import Iterator
from contextlib import contextmanager

from kubernetes import client, config

from demo.stack import Stack


def patch_node(stack: Stack, name: str, patch: dict) -> None:
    api = client.CoreV1Api(config.new_client_from_config(str(stack.kubeconfig)))
    api.patch_node(name, patch)


@contextmanager
def cordoned(stack: Stack, name: str) -> Iterator[None]:
    """Uncordoned again however it ends: no plan of a later test could let a node of its pool go."""
    patch_node(stack, name, {"spec": {"unschedulable": True}})
    try:
        yield
    finally:
        patch_node(stack, name, {"spec": {"unschedulable": False}})
