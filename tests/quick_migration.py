"""Django's migrate for an empty database, in a fifth of its CPU: `python -m tests.quick_migration`.

Django renders every model anew that is connected to a changed one, and almost all are: 13 of 17 s. This renders the
changed model alone. Rows of a real database could miss each other by that; an empty one has none.
`tests/config/test_quick_migration.py` compares the tables with those of `manage.py migrate`.
"""

from typing import Any

import django
from django.core.management import call_command
from django.db.migrations.state import ModelState, ProjectState

ADD_MODEL = ProjectState.add_model


def _add_model(state: Any, model_state: ModelState) -> None:
    apps = state.__dict__.pop("apps", None)
    ADD_MODEL(state, model_state)
    if apps is not None:
        state.__dict__["apps"] = apps
        apps.render_multiple([model_state])


def _itself(_state: ProjectState, app_label: str, model_name: str, *_delay: bool) -> set[tuple[str, str]]:
    return {(app_label, model_name)}


if __name__ == "__main__":
    ProjectState.add_model = _add_model
    ProjectState._find_reload_model = _itself
    django.setup()
    call_command("migrate", verbosity=0)
