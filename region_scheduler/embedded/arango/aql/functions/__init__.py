"""AQL's functions, one module a family; importing this package registers them all."""

from region_scheduler.embedded.arango.aql.functions import arrays, objects, strings, types
from region_scheduler.embedded.arango.aql.functions.registry import REGISTRY, Function

__all__ = ["REGISTRY", "Function", "arrays", "objects", "strings", "types"]
