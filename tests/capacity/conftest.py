from tests.callers import bob, eve, nobody, now  # noqa: F401 (fixtures)
from tests.pages import queries_of  # noqa: F401 (fixtures)
