"""What a load balancer asks, while parts of the stack come and go."""

import httpx
import pytest

from demo.stack import Stack
from demo.visitor import wait_until
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.observe


def readiness(stack: Stack) -> dict:
    return httpx.get(f"{stack.url}/readyz", timeout=PATIENCE_S).json()


def test_says_what_is_away_while_redis_is_and_mends_by_itself(stack: Stack):
    stack.kill("valkey")
    without = readiness(stack)
    alive = httpx.get(f"{stack.url}/healthz").status_code
    stack.restart("valkey")

    wait_until(lambda: readiness(stack)["status"] == "ready", what="readiness", timeout_s=PATIENCE_S)
    assert alive == 200
    assert without["status"] == "not ready"
    assert "Redis does not answer" in without["redis"]
    assert without["database"] == "ok"


def test_a_web_process_that_was_killed_is_back_at_its_address(stack: Stack):
    stack.kill("web")
    stack.restart("web")

    assert readiness(stack)["status"] == "ready"
