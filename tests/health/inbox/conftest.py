from tests.callers import ada, bob, eve, now, root  # noqa: F401 (fixtures)
from tests.pages import queries_of  # noqa: F401 (fixtures)
