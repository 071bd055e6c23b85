from tests.callers import now  # noqa: F401 (fixture)
