from datetime import timedelta
from math import ceil
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm, SetPasswordForm
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import (
    INTERNAL_RESET_SESSION_TOKEN,
    LoginView,
    LogoutView,
    PasswordResetConfirmView,
    redirect_to_login,
)
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from edges.transition_errors import LostRace
from people.roster.accounts import set_password
from people.sign_in.access import NO_LOCAL, links
from people.sign_in.second_factor import has_second_factor
from people.sign_in.throttle import LONGEST_NAME, count_password, forgive
from people.web import second_factor
from people.web.return_pages import form_page


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    template_name = "people/sign_in/page.html"
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        choices = {"is_local": settings.LOCAL_SIGN_IN, "is_single": settings.OIDC.is_on}
        return super().get_context_data(**kwargs, **choices)

    def post(self, request: HttpRequest, *args, **kwargs) -> HttpResponse:
        if not settings.LOCAL_SIGN_IN:
            raise PermissionDenied(NO_LOCAL)
        if wait := count_password(request, request.POST.get("username", ""), now=timezone.now()):
            return self._wait(wait)
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        forgive(self.request, self.request.POST.get("username", ""))
        user = form.get_user()
        if has_second_factor(user):
            return second_factor.begin(self.request, user, next_url=self.get_redirect_url())
        return super().form_valid(form)

    def get_redirect_url(self, *args, **kwargs) -> str:
        """Returns no redirect to this page itself, which Django treats as an error."""
        url = super().get_redirect_url(*args, **kwargs)
        return "" if url == self.request.path else url

    def _wait(self, wait: timedelta) -> HttpResponse:
        """Shows the form without checking the password, since the check is what the guesser wants."""
        seconds = ceil(wait.total_seconds())
        name = self.request.POST.get("username", "")[:LONGEST_NAME]
        form = AuthenticationForm(self.request, initial={"username": name})
        context = self.get_context_data(form=form, wait_s=seconds)
        response = self.render_to_response(context, status=429)
        response["Retry-After"] = str(seconds)
        return response


class SignOut(LogoutView):
    pass


@method_decorator([login_not_required, never_cache], name="dispatch")
class SetPassword(PasswordResetConfirmView):
    """The page of a one-time link. It redirects at once, so that no later page or log contains the link."""

    template_name = "people/sign_in/set_password.html"
    token_generator = links

    def form_valid(self, form: SetPasswordForm) -> HttpResponse:
        """Saves the password by a guarded update. The form's own `save` would overwrite columns with outdated
        values."""
        try:
            set_password(form.user, form.cleaned_data["new_password1"], now=timezone.now())
        except LostRace:
            self.validlink = False
            return self.render_to_response(self.get_context_data())
        del self.request.session[INTERNAL_RESET_SESSION_TOKEN]
        return redirect("sign-in")


class SignInFirst(LoginRequiredMiddleware):
    def handle_no_permission(self, request: HttpRequest, view_func) -> HttpResponseRedirect:
        """Redirects. After a sent form the visitor returns to the page of the form, since the form's URL shows
        nothing."""
        if request.method in {"GET", "HEAD"}:
            return super().handle_no_permission(request, view_func)
        messages.error(request, "You were signed out. The form was not processed.")
        field = self.get_redirect_field_name(view_func)
        return redirect_to_login(form_page(request), self.get_login_url(view_func), field)
