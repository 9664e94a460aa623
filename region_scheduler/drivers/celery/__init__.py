"""The region's broker and its workers, by Celery and kombu on Redis, or one like it, or RabbitMQ.

The broker carries messages and wake-ups; it never decides. Nothing is scheduled in it (no
countdown, no eta, no results), and a message that comes twice, late or never costs latency only.
"""
