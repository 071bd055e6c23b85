from datetime import timedelta
from math import ceil

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.decorators import method_decorator

from people.sign_in.throttle import LONGEST_NAME, count_password, forgive


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    template_name = "people/sign_in/page.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args, **kwargs) -> HttpResponse:
        if wait := count_password(request, request.POST.get("username", ""), now=timezone.now()):
            return self._wait(wait)
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        forgive(self.request, self.request.POST.get("username", ""))
        return super().form_valid(form)

    def get_redirect_url(self, *args, **kwargs) -> str:
        """Not back to here: Django takes that for a mistake of ours."""
        there = super().get_redirect_url(*args, **kwargs)
        return "" if there == self.request.path else there

    def _wait(self, wait: timedelta) -> HttpResponse:
        """The form is shown unread: its own check is what the guesser waits for."""
        seconds = ceil(wait.total_seconds())
        name = self.request.POST.get("username", "")[:LONGEST_NAME]
        form = AuthenticationForm(self.request, initial={"username": name})
        context = self.get_context_data(form=form, wait_s=seconds)
        response = self.render_to_response(context, status=429)
        response["Retry-After"] = str(seconds)
        return response


class SignOut(LogoutView):
    pass
