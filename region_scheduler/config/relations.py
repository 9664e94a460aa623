"""Relations between settings: each alone is fine, together they would be dangerous."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from region_scheduler.config.settings import SIGNING_KEY_BYTES_MIN, Settings

ARANGO_FAILOVER_S_MIN = 15.0
"""A cluster was never seen to fail over faster; a lease must outlast it."""
BROKERS: Final = ("redis://", "rediss://", "amqp://", "amqps://")


def broken_relations(settings: Settings) -> Iterator[str]:
    """Yield each relation that does not hold, with what would mend it."""
    if settings.broker.visibility_timeout_s <= settings.worker.cap_s_max:
        yield (
            f"broker.visibility_timeout_s={settings.broker.visibility_timeout_s:g} must be above"
            f" worker.cap_s_max={settings.worker.cap_s_max:g}, or running steps are delivered again"
        )
    if not settings.arango.is_embedded and settings.lease.failover_s < ARANGO_FAILOVER_S_MIN:
        yield (
            f"lease.failover_s={settings.lease.failover_s:g} is below {ARANGO_FAILOVER_S_MIN:g},"
            " which only the embedded engine can keep (arango.is_embedded)"
        )
    if settings.broker.url and not settings.broker.url.startswith(BROKERS):
        yield f"broker.url must begin with one of {', '.join(BROKERS)}"
    if settings.arango.url and not settings.arango.url.startswith(("http://", "https://")):
        yield "arango.url must begin with http:// or https://"
    if "@" in settings.arango.url:
        yield "arango.url must not hold a user: say arango.user and arango.password"
    key = settings.signing_key.get_secret_value().encode()
    if key and len(key) < SIGNING_KEY_BYTES_MIN:
        yield f"signing_key must have at least {SIGNING_KEY_BYTES_MIN} bytes"
    yield from _region_relations(settings)


def _region_relations(settings: Settings) -> Iterator[str]:
    known = set(settings.regions)
    if len(known) != len(settings.regions):
        yield "regions names a region twice"
    if known and settings.region and settings.region not in known:
        yield f"region={settings.region} is not among regions={','.join(settings.regions)}"
    strangers = sorted(set(settings.peers) - known) if known else []
    if strangers:
        yield f"peers names {', '.join(strangers)}, which regions does not"
    for region, url in sorted(settings.peers.items()):
        if not url.startswith(("http://", "https://")):
            yield f"peers.{region} must begin with http:// or https://"
