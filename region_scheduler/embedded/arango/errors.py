"""ArangoDB's error numbers, and the HTTP status each is answered with."""

from __future__ import annotations

from typing import Any, Final


class ArangoError(Exception):
    """A failure that ArangoDB would report with an error number.

    Args:
        number: ArangoDB's `errorNum`.
        message: `errorMessage`; the number's standard text when empty.
        status: HTTP status where the handler sets it itself; else it follows from the number.
        extra: Further attributes of the error body (`_id`, `_key`, `_rev` of a conflict).
    """

    def __init__(
        self, number: int, message: str = "", status: int | None = None, **extra: Any
    ) -> None:
        super().__init__(message)
        self.number = number
        self.message = message
        self.status = status
        self.extra = extra

    def __str__(self) -> str:
        """Return the message, or the number's standard text."""
        return self.message or message_of(self.number)


def status_of(number: int) -> int:
    """Return the HTTP status that ArangoDB answers error `number` with; 500 if it lists none."""
    return _STATUS.get(number, 500)


def message_of(number: int) -> str:
    """Return the standard text of error `number`."""
    return _MESSAGES.get(number, "internal error")


def _statuses() -> dict[int, int]:
    by_status: dict[int, tuple[int, ...]] = {
        400: (
            *(10, 17, 400, 600, 1204, 1205, 1208, 1214, 1216, 1218, 1221, 1222, 1226, 1227, 1229),
            *(1233, 1235, 1237, 1466, 1468, 1469, 1501, 1502, 1504, 1510, 1511, 1512, 1521, 1522),
            *(1539, 1540, 1541, 1542, 1543, 1550, 1551, 1552, 1553, 1561, 1562, 1563, 1569, 1572),
            *(1573, 1575, 1578, 1579, 1620, 1621, 1651, 1652, 1653, 1901, 1906, 1920, 1921, 1922),
            *(1923, 1927, 1928, 1929, 1938, 1939, 1947),
        ),
        401: (401,),
        403: (11, 1004, 1230),
        404: (
            *(404, 1202, 1203, 1212, 1228, 1570, 1571, 1582, 1591, 1600, 1655, 1703, 1852, 1924),
            *(1926, 1930, 1932),
        ),
        405: (405,),
        406: (1489, 1490),
        409: (1200, 1207, 1210, 1601, 1702, 1851, 1925),
        410: (21, 1500, 1654),
        412: (1448, 21004),
        421: (1491,),
        501: (9, 31, 1470),
        503: (30, 38, 1465, 1478, 1495, 1496),
    }
    return {number: status for status, numbers in by_status.items() for number in numbers}


_STATUS: Final = _statuses()

_MESSAGES: Final[dict[int, str]] = {
    9: "not implemented",
    10: "bad parameter",
    11: "forbidden",
    17: "type error",
    18: "timeout",
    21: "canceled",
    28: "locked",
    30: "shutdown in progress",
    31: "only enterprise version",
    32: "resource limit exceeded",
    400: "bad parameter",
    401: "not authorized to execute this request",
    404: "not found",
    405: "method not supported",
    600: "corrupted JSON",
    1004: "read only",
    1200: "conflict",
    1202: "document not found",
    1203: "collection or view not found",
    1204: "parameter 'collection' not found",
    1205: "illegal document identifier",
    1207: "duplicate name",
    1208: "illegal name",
    1210: "unique constraint violated",
    1212: "index not found",
    1216: "invalid document type",
    1218: "invalid document type",
    1221: "illegal document key",
    1222: "unexpected document key",
    1225: "server database directory not writable",
    1226: "document key missing",
    1227: "invalid document type",
    1228: "database not found",
    1229: "database name invalid",
    1230: "operation only allowed in system database",
    1233: "edge attribute missing or invalid",
    1457: "timeout in cluster operation",
    1465: "lost connection to cluster node",
    1466: "must not specify _key for this collection",
    1469: "must not change shard keys",
    1470: "unsupported operation or parameter for clusters",
    1478: "a cluster backend which was required for the operation could not be reached",
    1491: "shard leader resigned",
    1495: "leadership challenge is ongoing",
    1496: "not a leader",
    1500: "query killed",
    1501: "syntax error",
    1502: "query is empty",
    1521: "collection not known to traversal or path query",
    1551: "no value specified for declared bind parameter",
    1552: "bind parameter was not declared in the query",
    1553: "bind parameter has an invalid value or type",
    1562: "division by zero",
    1579: "access after data-modification",
    1591: "query ID not found",
    1600: "cursor not found",
    1601: "cursor is busy",
    1620: "schema validation failed",
    1621: "schema validation is invalid",
    1652: "unregistered collection used in transaction",
    1653: "disallowed operation inside transaction",
    1654: "transaction aborted",
    1655: "transaction not found",
    1702: "duplicate user",
    1703: "user not found",
    1901: "invalid graph",
    1906: "invalid parameter",
    1920: "multi use of edge collection in edge def",
    1921: "edge collection already used in edge def",
    1922: "missing graph name",
    1923: "malformed edge definition",
    1924: "graph not found",
    1925: "graph already exists",
    1926: "the specified vertex collection does not exist or is not part of the graph",
    1927: "the collection is not a vertex collection",
    1928: "collection is not in list of orphan collections",
    1929: "collection already used in edge def",
    1930: "edge collection not used in graph",
    1932: "collection _graphs does not exist",
    1938: "collection used in orphans",
    1939: "the specified edge collection does not exist or is not part of the graph",
    1947: "referenced vertex collection is not part of the graph",
    21004: "queue time violated",
}
