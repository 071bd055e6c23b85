"""Behind TLS, with collected static files. Everything that must be given is given by the environment."""

from config.settings.base import *  # noqa: F403

SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SECURE_HSTS_SECONDS = 31_536_000
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = True
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz(/|$)", r"^metrics$"]  # asked by machines beside us, without a proxy
# One name is ours: what its subdomains serve, and what browsers are shipped with, is for whoever has the domain to say.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
