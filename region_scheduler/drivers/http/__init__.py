"""Calls to the other regions' APIs, by httpx."""
