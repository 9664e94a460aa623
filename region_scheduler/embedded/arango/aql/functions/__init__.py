"""AQL's functions, one module a family; importing this package registers them all."""

from region_scheduler.embedded.arango.aql.functions import (
    arrays,
    bits,
    date_format,
    dates,
    documents,
    hashes,
    numbers,
    objects,
    regex,
    similarity,
    strings,
    types,
    vectors,
)
from region_scheduler.embedded.arango.aql.functions.registry import REGISTRY, Function

__all__ = [
    "REGISTRY",
    "Function",
    "arrays",
    "bits",
    "date_format",
    "dates",
    "documents",
    "hashes",
    "numbers",
    "objects",
    "regex",
    "similarity",
    "strings",
    "types",
    "vectors",
]
