from django.urls import path

from people.api.me import Me
from people.api.session import Session
from people.api.tokens import TokenDetail, TokenList

urlpatterns = [
    path("me", Me.as_view()),
    path("session", Session.as_view()),
    path("tokens", TokenList.as_view()),
    path("tokens/<int:token_id>", TokenDetail.as_view()),
]
