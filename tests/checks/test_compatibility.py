import importlib.util
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from gpu.compatibility import Matrix, the_matrix
from gpu.compatibility.ranges import Range

ROOT = Path(__file__).resolve().parents[2]
TODAY = date(2026, 11, 26)
MATRIX = the_matrix()


def problems(matrix: Matrix) -> list[str]:
    spec = importlib.util.spec_from_file_location("compatibility_check", ROOT / "bin" / "checks" / "compatibility.py")
    assert spec is not None
    assert spec.loader is not None
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    return list(check.problems(matrix, today=TODAY))


def with_one(table: str, **changed: object) -> Matrix:
    """The matrix with the first entry of a table changed."""
    first, *rest = getattr(MATRIX, table)
    return replace(MATRIX, **{table: (replace(first, **changed), *rest)})


def test_the_matrix_we_ship_passes():
    assert problems(MATRIX) == []


@pytest.mark.parametrize(
    ("table", "changed", "word"),
    [
        ("branches", {"source": "somebody said so"}, "neither an https address"),
        ("branches", {"source": "http://docs.nvidia.com/"}, "neither an https address"),
        ("branches", {"date": TODAY + timedelta(days=1)}, "in the future"),
        ("branches", {"date": "2026-08-21"}, "no ISO day"),
        ("releases", {"version": "latest"}, "no version"),
        ("releases", {"driver": "999.1.1"}, "in no entry"),
        ("series", {"state": "fine"}, "no state of the life cycle"),
        ("platforms", {"kubernetes": ["1.31", "1.24"]}, "inverted"),
        ("platforms", {"kubernetes": []}, "inverted"),
        ("platforms", {"os": "plan9"}, "no system"),
        ("platforms", {"operator": Range("25.3.0", "24.9.0")}, "empty or unbounded"),
        ("platforms", {"operator": Range("24.9.0", "25.4")}, "both are of the same operator"),
        ("runtimes", {"versions": ["2.0", "1.7"]}, "inverted"),
        ("runtimes", {"operator": Range("24.9.0", "25.4")}, "both are of the same operator"),
        ("listed", {"recommended": "1.2.3"}, "does not list"),
        ("listed", {"operator": Range("24.9.2", "25.3.1")}, "both are of the same operator"),
        ("cuda", {"cuda": Range("10.0", "11.0")}, "two floors for one CUDA"),
        ("platforms", {"distributions": ["", "nomad"]}, "no distribution"),
        ("lives", {"of": "docker"}, "no component with a known life cycle"),
        ("lives", {"version": "1.25"}, "twice"),
        ("lives", {"extended": date(2020, 1, 1)}, "ends later"),
        ("openshift", {"version": "4.18"}, "twice"),
        ("openshift", {"kubernetes": "1.31"}, "twice"),
        ("skew", {"kubelet": Range("1.0", "1.26")}, "two skews"),
        ("elsewhere", {"os": "plan9"}, "no system"),
        ("elsewhere", {"answer": "supported"}, "cannot be"),
        ("floors", {"when": {"products": ["B2000"]}}, "no product we know"),
        ("floors", {"when": {}}, "no condition"),
        ("known_bad", {"when": {"phase_of_the_moon": "full"}}, "is no condition"),
        ("known_bad", {"when": {"driver": ["new"]}}, "no version"),
        ("known_bad", {"when": {"driver": {"from": "580", "before": "570"}}}, "an empty range"),
        ("known_bad", {"sentence": "{nobody} knows."}, "which is no fact"),
        ("known_bad", {"answer": "supported"}, "cannot be"),
        ("known_bad", {"name": "nri-on-cri-o"}, "twice"),
    ],
)
def test_names_what_is_wrong(table, changed, word):
    found = problems(with_one(table, **changed))

    assert any(word in problem for problem in found), found
