import json
from datetime import UTC, datetime

import pytest

from benchmarks import results
from benchmarks.results import recorded, table

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


def a_line(name: str = "page_ms", value: float = 100.0, **more) -> str:
    figure = {"bench": "observe", "name": name, "value": value, "unit": "ms", "target": 150, "ok": True}
    return json.dumps(figure | {"bound": "at most"} | more)


def record(folder, *lines: str, at: datetime = NOON, commit: str = "abcd1234") -> int:
    return results.record(lines, options=["--short"], made_by=commit, at=at, folder=folder)


def test_a_record_names_date_commit_machine_options_and_reference(tmp_path):
    number = record(tmp_path, "seed 7", a_line("reference_ms", 24.0, target=None, bound=""), a_line())

    [reference, page] = recorded(tmp_path)
    assert number == 2
    assert (page["date"], page["commit"], page["options"], page["reference_ms"]) == (
        "2026-11-28", "abcd1234", "--short", 24.0,
    )  # fmt: skip
    assert page["machine"] == results.machine()
    assert reference["name"] == "reference_ms"
    assert (tmp_path / "observe.jsonl").exists()


def test_a_second_run_is_appended(tmp_path):
    record(tmp_path, a_line(value=90.0))
    record(tmp_path, a_line(value=120.0))

    assert [figure["value"] for figure in recorded(tmp_path)] == [90.0, 120.0]


def test_the_table_has_the_latest_the_target_and_the_best(tmp_path):
    record(tmp_path, a_line(value=90.0))
    record(tmp_path, a_line(value=120.0), commit="beef5678")

    [_, _, row] = table(recorded(tmp_path)).splitlines()
    assert row == ("| `observe --short` | `page_ms` | 120 ms | at most 150 ms | 90 ms | 2026-11-28 | beef5678 | – |")


def test_the_best_of_at_least_is_the_highest(tmp_path):
    record(tmp_path, a_line(value=5.0, bound="at least"))
    record(tmp_path, a_line(value=4.0, bound="at least"))

    assert "| 4 ms | at least 150 ms | 5 ms |" in table(recorded(tmp_path))


def test_a_missed_target_is_marked(tmp_path):
    record(tmp_path, a_line(value=200.0, ok=False))

    assert "200 ms **missed**" in table(recorded(tmp_path))


def test_a_figure_without_a_target_has_no_best(tmp_path):
    record(tmp_path, a_line(target=None, bound=""))

    assert "| 100 ms | – | – |" in table(recorded(tmp_path))


def test_code_that_is_in_no_commit_is_not_recorded(monkeypatch):
    monkeypatch.setattr(results, "_git", lambda *words: " M fleet/queries.py" if words[0] == "status" else "abcd1234")

    with pytest.raises(results.UncommittedError, match=r"fleet/queries\.py"):
        results.commit()


def test_every_kept_record_can_be_read():
    for figure in recorded():
        assert {"date", "commit", "machine", "reference_ms", "options", "bench", "name", "value", "ok"} <= set(figure)
