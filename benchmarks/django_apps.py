"""Loads Django's apps, for a bench without a database whose modules import models. Import it first."""

import os

import django
from django.conf import settings

if not settings.configured and "DJANGO_SETTINGS_MODULE" not in os.environ:
    os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings.test", "DATABASE_URL": "sqlite://:memory:"}
django.setup()
