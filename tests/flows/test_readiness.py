"""What a load balancer asks, while parts of the stack come and go."""

import signal

import httpx
import pytest

from demo.parts import QUEUES
from demo.stack import Stack
from demo.visitor import Visitor, wait_until
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


@pytest.mark.nightly
def test_a_web_process_that_was_killed_is_back_at_its_address(stack: Stack):
    stack.kill("web")
    stack.restart("web")

    assert readiness(stack)["status"] == "ready"


@pytest.mark.nightly
def test_the_threads_of_a_worker_count_as_long_as_it_runs(stack: Stack, admin: Visitor):
    wait_until(lambda: threads(admin) == QUEUES["observe"], what="the worker's threads", timeout_s=PATIENCE_S)

    stack.kill("observe", signal.SIGTERM)
    wait_until(lambda: threads(admin) == 0, what="its threads to be gone", timeout_s=PATIENCE_S)
    stack.restart("observe")

    wait_until(lambda: threads(admin) == QUEUES["observe"], what="the next worker's threads", timeout_s=PATIENCE_S)


def threads(admin: Visitor) -> int:
    text = admin.http.get("/metrics").text
    return next(
        int(float(line.split()[1])) for line in text.splitlines() if line.startswith("quarterdeck_observer_threads ")
    )
