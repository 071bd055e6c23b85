"""The bench of rehearsed rollouts, small."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.figures import Figures
from benchmarks.rehearsing.operator_alone import nodes_broken_alone
from benchmarks.rehearsing.scenarios import HEALTHY, kind_of, play
from benchmarks.safety import check_faults, report
from benchmarks.safety_plot import safety_plot
from rollouts.rehearsal.faults import FAULTS
from rollouts.rehearsal.fleet import VirtualNode
from rollouts.rehearsal.run import Run, Unending


def test_a_rollout_is_the_same_whoever_plays_it_again():
    assert play(5, 3) == play(5, 3)


def kinds_of(rollouts: int) -> list[str]:
    return [kind_of(number, tuple(FAULTS)) for number in range(rollouts)]


def test_a_quarter_of_the_rollouts_is_healthy_and_each_fault_is_as_frequent():
    rollouts = Counter(kinds_of(510))

    assert rollouts.pop(HEALTHY) >= 100
    assert max(rollouts.values()) - min(rollouts.values()) <= 1
    assert rollouts.keys() == FAULTS.keys()


def test_a_fault_of_a_file_keeps_its_share_and_its_value():
    fault = replace(FAULTS["bad-kernel"], key="own", factor="zone", value="b", share_percent=50)

    rollouts = [play(5, number, faults={"own": fault}) for number in (1, 2, 3)]

    assert all(0 < one.affected < one.nodes / 2 or not one.affected for one in rollouts)
    assert any(one.affected for one in rollouts)


def test_a_wrong_file_of_faults_ends_the_bench_before_it_begins(tmp_path: Path):
    path = tmp_path / "own.toml"
    path.write_text('[[faults]]\nkey = "own"\ntitle = "Own"\nmetrics = { heat = 1 }')

    with pytest.raises(SystemExit, match=r"own.toml: \[\[faults\]\] 1 own: metrics: no metric is called heat"):
        check_faults(path)


def test_its_figures_add_up(capsys: pytest.CaptureFixture[str]):
    figures = Figures("safety", {})

    numbers = [kinds_of(510).index(key) for key in ("bad-driver", "bad-for-half", HEALTHY)]
    report(figures, [play(5, number) for number in numbers])

    said = {line["name"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert said["rollouts"]["value"] == 3
    assert said["rollouts"]["healthy"] == 1
    assert said["bad_stages_passed"]["value"] == 0
    assert said["operator_alone_nodes_broken"]["value"] >= said["nodes_broken"]["value"]
    assert "right_suspect_ratio (no such rollout; play more of them)" in figures.failed  # no proof is no pass


def test_only_under_a_fault_that_comes_and_goes_may_a_plan_have_no_end(monkeypatch: pytest.MonkeyPatch):
    def neither_ends_nor_asks(*_: object) -> None:
        raise Unending

    monkeypatch.setattr(Run, "to_the_end", neither_ends_nor_asks)
    figures = Figures("safety", {})
    rollouts = [play(5, kinds_of(510).index(key)) for key in (HEALTHY, "bad-kernel", "comes-and-goes")]

    report(figures, rollouts)

    assert [one.is_stuck for one in rollouts] == [True, True, False]
    assert any(failed.startswith("stuck_rollouts") for failed in figures.failed)


@pytest.mark.parametrize(
    ("fault", "broken"),
    [
        ("bad-driver", 1),  # its slot is gone
        ("validator-absent", 1),
        ("node-lost", 6),  # a quarter of the nodes is unavailable, and the next one had begun
        ("validator-fails", 20),  # upgrade-failed, and at once upgrade-done: docs/design/nvidia.md 2.7
        ("bad-kernel", 20),
    ],
)
def test_the_operator_alone_stops_where_its_slots_are_gone(fault: str, broken: int):
    nodes = [VirtualNode(f"node-{number:02}", {}, "old", fault=FAULTS[fault]) for number in range(20)]

    assert nodes_broken_alone(nodes) == broken
    assert {node.version for node in nodes} == {"old"}


def test_the_plot_has_two_bars_for_each_fault_and_is_the_same_again():
    drawn = safety_plot({"bad-kernel": 3}, {"bad-kernel": 60, "flapping": 20}, "seed 5")

    assert drawn == safety_plot({"bad-kernel": 3}, {"flapping": 20, "bad-kernel": 60}, "seed 5")
    assert re.findall(r">([^<]+)</text>", drawn)[-6:] == ["bad-kernel", "3", "60", "flapping", "0", "20"]
