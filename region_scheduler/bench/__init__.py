"""Measurements of this product on this machine, each beside what the machine itself can do."""
