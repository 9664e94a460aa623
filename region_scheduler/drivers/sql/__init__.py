"""This region's relational store, by SQLAlchemy Core on SQLite or PostgreSQL.

It can be dropped and rebuilt at any time: a row says "worth trying to claim", never "yours".
"""
