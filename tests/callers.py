"""Who calls an edge: ada owns, bob views, amy approves, eve is a stranger, and nobody is signed in."""

from datetime import datetime

import pytest
import time_machine
from rest_framework.test import APIClient

from tests.make import NOON, a_user


def calling(user=None, *, token: str = "") -> APIClient:
    """A client that has signed in. By session it sends no CSRF token, which test clients need not."""
    client = APIClient()
    if user is not None:
        client.force_login(user)
    if token:
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    client.user = user
    return client


@pytest.fixture
def now() -> datetime:
    """Noon, while the test runs."""
    with time_machine.travel(NOON, tick=False):
        yield NOON


@pytest.fixture
def root(db, now) -> APIClient:
    return calling(a_user("root", role="admin"))


@pytest.fixture
def ada(db, now) -> APIClient:
    return calling(a_user("ada", role="operator"))


@pytest.fixture
def amy(db, now) -> APIClient:
    return calling(a_user("amy", role="approver"))


@pytest.fixture
def bob(db, now) -> APIClient:
    return calling(a_user("bob", role="viewer"))


@pytest.fixture
def eve(db, now) -> APIClient:
    return calling(a_user("eve"))


@pytest.fixture
def nobody(db, now) -> APIClient:
    return calling()
