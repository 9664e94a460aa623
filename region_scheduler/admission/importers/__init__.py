"""Conversions from graphs that people have already."""
