"""What a newcomer sees in the first minutes, through the whole product: the timetable, played fast."""

from pathlib import Path

import pytest

from demo.parts import Fleet
from demo.script import A_MINUTE_S, Script
from demo.stack import PASSWORD, Stack
from demo.visitor import Visitor, wait_until
from tests.patience import PATIENCE_S

ASKED_AGAIN_S = 60.0  # exporters are asked every 30 s


@pytest.mark.nightly
def test_the_first_minutes_show_an_xid_and_why_pods_wait(tmp_path: Path):
    with Stack(tmp_path, Fleet(nodes=4, speed=60.0)) as stack, Visitor(stack.url, "viewer").sign_in(PASSWORD) as viewer:
        script = Script(stack.simulator_url, 1, say=lambda _: None)

        for minute in range(4):
            script.play(minute * A_MINUTE_S)

        def reasons() -> set[str]:
            waiting = viewer.all("/api/v1/pods", namespace="robotics")
            return {pod["reason"]["key"] for pod in waiting if pod["reason"]}

        def worst() -> set[str]:
            return {found["rule"] for found in viewer.all("/api/v1/findings") if found["severity"] == "critical"}

        why = {"larger_than_any_node", "matches_no_node"}
        wait_until(lambda: why <= reasons(), what=lambda: f"{why}, not {reasons()}", timeout_s=PATIENCE_S)
        wait_until(lambda: "gpu-xid" in worst(), what="a finding of the Xid", timeout_s=ASKED_AGAIN_S + PATIENCE_S)
