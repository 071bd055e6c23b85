from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.views import PasswordResetConfirmView
from django.http import HttpResponse
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from people.roster.accounts import note_password
from people.sign_in.password_links import links


@method_decorator([login_not_required, never_cache], name="dispatch")
class SetPassword(PasswordResetConfirmView):
    """Where a one-time link leads. The link itself is left at once: no page after it, and no log of one, has it."""

    template_name = "people/set_password.html"
    token_generator = links
    success_url = reverse_lazy("sign-in")

    def form_valid(self, form: SetPasswordForm) -> HttpResponse:
        response = super().form_valid(form)
        note_password(form.user, "person.password", actor=form.user.get_username(), now=timezone.now())
        return response
