"""No variable of a setting can be named as a secret of a source: Z39."""

import ast
import re

import pytest
from django.conf import settings

from health.sources.secrets import SOURCE_SECRETS, NoSecret
from tests.rooms import ROOT

PREFIX = SOURCE_SECRETS.prefix
SETTINGS = [ast.parse(path.read_text()) for path in sorted((ROOT / "config" / "settings").glob("*.py"))]


def variables_read() -> set[str]:
    """What the modules of settings read of the environment: the first argument of `env(…)` and `env.…(…)`."""
    calls = [node for module in SETTINGS for node in ast.walk(module) if isinstance(node, ast.Call)]
    named = [call.args[0] for call in calls if call.args and re.fullmatch(r"env(\.\w+)?", ast.unparse(call.func))]
    return {argument.value for argument in named if isinstance(argument, ast.Constant)}


def test_settings_read_the_environment_in_one_way_only():
    written = "\n".join(ast.unparse(module) for module in SETTINGS)

    assert "environ[" not in written
    assert "getenv" not in written
    assert "environ.get" not in written
    assert "QUARTERDECK_SECRET_KEY" in variables_read()


def test_each_variable_that_a_setting_reads_is_known_as_one():
    assert variables_read() <= settings.SETTING_VARIABLES


def test_no_setting_has_the_prefix_of_secrets_of_sources():
    named = {name for path in (ROOT / "config").rglob("*.py") for name in re.findall(r"[A-Z_]{3,}", path.read_text())}

    assert [name for name in variables_read() | named if name.startswith(PREFIX)] in (
        [],
        [PREFIX],
    )


@pytest.mark.parametrize("name", sorted(variables_read()))
def test_no_setting_is_a_secret(name):
    with pytest.raises(NoSecret):
        SOURCE_SECRETS.check(f"env:{name}")
