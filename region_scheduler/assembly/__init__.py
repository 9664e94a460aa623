"""Puts roles together from ports, and picks the drivers that stand behind the ports."""
