"""Provisions landing zones as dependency graphs over several regions."""
