from datetime import timedelta
from hashlib import sha256

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator

TRIES, WINDOW = 20, timedelta(minutes=1)  # as REST has it: guessing gets slow, and nobody can lock another out


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    template_name = "people/sign_in.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args, **kwargs) -> HttpResponse:
        if not _is_too_often(request):
            return super().post(request, *args, **kwargs)
        form = self.get_form()
        form.add_error(None, "Too many tries for this name. Wait a minute.")
        return self.render_to_response(self.get_context_data(form=form), status=429)


class SignOut(LogoutView):
    pass


def _is_too_often(request: HttpRequest) -> bool:
    """Count one more try for this name from this address."""
    who = f"{request.META.get('REMOTE_ADDR', '')}:{request.POST.get('username', '')}"
    key = f"sign-in-page:{sha256(who.encode()).hexdigest()}"
    cache.add(key, 0, timeout=WINDOW.total_seconds())
    try:
        return cache.incr(key) > TRIES
    except ValueError:  # it ran out between the two lines: a new window
        return False
