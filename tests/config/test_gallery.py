"""The component gallery: every part in every state, and only where somebody develops."""

import os
import subprocess
import sys
from pathlib import Path

from django.conf import settings

from fleet.web.states import GLYPHS as NODE_GLYPHS
from rollouts.web.states import GLYPHS as PLAN_GLYPHS
from tests import make
from tests.pages import page, visiting

ROOT = Path(settings.BASE_DIR)


def seen(client, settings):
    settings.HAS_GALLERY = True
    return page(client, "/gallery")


def test_shows_every_state_in_light_and_dark(db, settings):
    viewer = visiting(make.a_user("ada", role="viewer"))

    shown = seen(viewer, settings)

    states = sum(len(glyphs) for glyphs in PLAN_GLYPHS.values()) + len(NODE_GLYPHS)
    assert shown.text.count("Every part in every state") == 1
    assert viewer.get("/gallery").content.count(b'class="state') >= 2 * states


def test_shows_every_part_that_all_apps_share():
    text = (ROOT / "templates" / "gallery" / "_parts.html").read_text()

    for part in (ROOT / "templates" / "parts").glob("*.html"):
        assert part.name in text or part.name == "_wrong.html", part.name


def test_is_not_there_in_production(db):
    assert visiting(make.a_user("ada", role="admin")).get("/gallery").status_code == 404

    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings.prod", "QUARTERDECK_SECRET_KEY": "x" * 60}
    script = "from django.conf import settings; print(settings.HAS_GALLERY)"
    said = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True)

    assert said.stdout.strip() == "False", said.stderr
