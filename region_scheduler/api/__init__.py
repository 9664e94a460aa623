"""A region's HTTP surface: health, and wake-ups from other regions; FastAPI lives here."""
