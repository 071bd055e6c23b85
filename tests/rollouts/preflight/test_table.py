from pathlib import Path

from rollouts import preflight

NO_RULES = {
    "__init__", "canary_proof", "driver_facts", "eviction_outcomes", "facts", "picks", "remaining_nodes", "rollback",
    "subject",
}  # fmt: skip


def test_no_file_of_checks_was_forgotten_in_the_table():
    folder = Path(preflight.__file__).parent
    asked = {rule.__module__.rpartition(".")[2] for rule in (*preflight.BLOCKERS, *preflight.WARNINGS)}

    files = {
        each.stem for each in folder.rglob("*.py") if folder / "live_checks" not in each.parents
    }  # it has its own table
    assert asked == files - NO_RULES
