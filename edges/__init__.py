"""The building blocks of pages and REST views. They know no app."""
