"""Who is signed out is led to the page to sign in at, and from there back to a page."""

from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme


class SignInFirst(LoginRequiredMiddleware):
    def handle_no_permission(self, request: HttpRequest, view_func) -> HttpResponseRedirect:
        """What takes forms alone cannot be shown: back to the page that the form was on."""
        if request.method in {"GET", "HEAD"}:
            return super().handle_no_permission(request, view_func)
        messages.error(request, "You were signed out before this was sent. Nothing was done.")
        field = self.get_redirect_field_name(view_func)
        return redirect_to_login(_page_of_the_form(request), self.get_login_url(view_func), field)


def _page_of_the_form(request: HttpRequest) -> str:
    """As the browser says it; the fleet, where it says none of ours."""
    said = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(said, {request.get_host()}, require_https=request.is_secure()):
        return reverse("fleet")
    return urlsplit(said)._replace(scheme="", netloc="", fragment="").geturl()
