from tests.callers import ada, amy, bob, eve, nobody, now, root  # noqa: F401 (fixtures)
