"""Checksums, encodings and addresses."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from typing import Any, Final

from region_scheduler.embedded.arango.aql.convert import is_number, json_text, to_integer, to_string
from region_scheduler.embedded.arango.aql.dates import iso_text
from region_scheduler.embedded.arango.aql.functions.registry import function
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.errors import ArangoError

_CASTAGNOLI: Final = 0x82F63B78
_OCTET: Final = re.compile(r"0|[1-9]\d{0,2}")
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_REVISION: Final = "-_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def _crc_table() -> list[int]:
    table = []
    for number in range(256):
        rest = number
        for _ in range(8):
            rest = rest >> 1 ^ (_CASTAGNOLI if rest & 1 else 0)
        table.append(rest)
    return table


_CRC: Final = _crc_table()


@function("MD5", 1)
def _md5(value: Any) -> str:
    return hashlib.md5(to_string(value).encode(), usedforsecurity=False).hexdigest()


@function("SHA1", 1)
def _sha1(value: Any) -> str:
    return hashlib.sha1(to_string(value).encode(), usedforsecurity=False).hexdigest()


@function("SHA256", 1)
def _sha256(value: Any) -> str:
    return hashlib.sha256(to_string(value).encode()).hexdigest()


@function("SHA512", 1)
def _sha512(value: Any) -> str:
    return hashlib.sha512(to_string(value).encode()).hexdigest()


@function("CRC32", 1)
def _crc32(value: Any) -> str:
    rest = 0xFFFFFFFF
    for byte in to_string(value).encode():
        rest = rest >> 8 ^ _CRC[(rest ^ byte) & 0xFF]
    return f"{rest ^ 0xFFFFFFFF:X}"


def _fnv(raw: bytes) -> int:
    rest = 0xCBF29CE484222325
    for byte in raw:
        rest = (rest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return rest


@function("FNV64", 1)
def _fnv64(value: Any) -> str:
    return f"{_fnv(to_string(value).encode()):X}"


@function("HASH", 1)
def _hash(value: Any) -> int:
    # Only sameness is promised; 53 bits, so that every JSON reader keeps the number.
    return _fnv(json_text(_ordered(value)).encode()) >> 11


def _ordered(value: Any) -> Any:
    if type(value) is dict:
        return {name: _ordered(value[name]) for name in sorted(value)}
    return [_ordered(item) for item in value] if type(value) is list else value


@function("MINHASH", 2)
def _minhash(run: Run, values: Any, count: Any) -> Any:
    size = to_integer(count)
    if type(values) is not list or size < 1:
        run.warn(1542, "MINHASH")
        return None
    lowest = sorted({_fnv(json_text(_ordered(value)).encode()) for value in values})[:size]
    return [base64.b64encode(number.to_bytes(8, "little")).decode()[:11] for number in lowest]


@function("MINHASH_COUNT", 1)
def _minhash_count(run: Run, error: Any) -> Any:
    if not is_number(error) or not 0 <= error < 1:
        run.warn(1542, "MINHASH_COUNT")
        return None
    return math.ceil(1 / (error * error)) if error else 0


@function("MINHASH_ERROR", 1)
def _minhash_error(run: Run, count: Any) -> Any:
    size = to_integer(count)
    if size < 1:
        run.warn(1542, "MINHASH_ERROR")
        return None
    return 1 / float(size) ** 0.5


@function("TO_BASE64", 1)
def _to_base64(value: Any) -> str:
    return base64.b64encode(to_string(value).encode()).decode()


@function("TO_HEX", 1)
def _to_hex(value: Any) -> str:
    return to_string(value).encode().hex()


@function("IS_IPV4", 1)
def _is_ipv4(value: Any) -> bool:
    return _address(value) is not None


@function("IPV4_TO_NUMBER", 1)
def _ipv4_to_number(run: Run, value: Any) -> int | None:
    number = _address(value)
    if number is None:
        run.warn(1542, "IPV4_TO_NUMBER")
    return number


def _address(value: Any) -> int | None:
    if type(value) is not str:
        return None
    octets = value.split(".")
    if len(octets) != 4 or not all(_OCTET.fullmatch(part) and int(part) < 256 for part in octets):
        return None
    return int.from_bytes(bytes(map(int, octets)), "big")


@function("IPV4_FROM_NUMBER", 1)
def _ipv4_from_number(run: Run, value: Any) -> str | None:
    if not is_number(value) or not 0 <= value <= 0xFFFFFFFF:
        run.warn(1542, "IPV4_FROM_NUMBER")
        return None
    return ".".join(map(str, int(value).to_bytes(4, "big")))


@function("UUID", 0)
def _uuid(run: Run) -> str:
    bits = run.options.chance.getrandbits(128)
    text = f"{bits & ~(0xF << 76) & ~(0x3 << 62) | (4 << 76) | (2 << 62):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


@function("RANDOM_TOKEN", 1)
def _random_token(run: Run, length: Any) -> str:
    count = to_integer(length)
    if not 0 <= count <= 65536:
        raise ArangoError(1542, "AQL: invalid argument type in call to function 'RANDOM_TOKEN()'")
    return "".join(run.options.chance.choices(_LETTERS, k=count))


@function("DECODE_REV", 1)
def _decode_rev(run: Run, revision: Any) -> Any:
    if type(revision) is not str or not revision or set(revision) - set(_REVISION):
        run.warn(1542, "DECODE_REV")
        return None
    number = 0
    for character in revision:
        number = number * 64 + _REVISION.index(character)
    return {"date": iso_text(number >> 20), "count": number & 0xFFFFF}
