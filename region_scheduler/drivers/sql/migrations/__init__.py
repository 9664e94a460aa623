"""Alembic's side: loaded only when a store must move."""
