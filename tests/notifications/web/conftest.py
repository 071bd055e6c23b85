from tests.pages import queries_of  # noqa: F401 (fixtures)
