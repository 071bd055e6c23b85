"""What goes on past a page meanwhile: what a person with kubectl does, what the socket tells, who looks."""

from collections.abc import Iterator
from contextlib import contextmanager

from kubernetes import client, config
from playwright.sync_api import Page

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


def tell(page: Page, name: str = "live:changed", **message: object) -> None:
    """As the page's own socket would have it."""
    page.evaluate(
        "([name, detail]) => document.dispatchEvent(new CustomEvent(name, { detail }))", [name, message]
    )  # fmt: skip


def look_away(page: Page) -> None:
    _look(page, is_hidden=True)


def look_back(page: Page) -> None:
    _look(page, is_hidden=False)


def _look(page: Page, *, is_hidden: bool) -> None:
    page.evaluate(
        """hidden => { Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
        document.dispatchEvent(new Event("visibilitychange")); }""",
        is_hidden,
    )
