"""Who acts, whose work it is, and how much of it is accepted and promoted."""
