from tests.callers import now, root  # noqa: F401 (fixtures)
