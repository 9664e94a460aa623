"""Proof that does not take the scheduler's word: what others wrote down is held against it."""
