"""What a row of the table of locks tells."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional

from . import _native

_STATES = ("free", "held", "expired")
_MODES = ("exclusive", "shared")


class LockInfo(NamedTuple):
    """One row of the table of locks, as it was when it was read."""

    #: None where it is not known.
    name: Optional[str]
    #: "free", "held" or "expired", by the database's clock.
    state: str
    key: str
    #: "" when free; of a shared lock that of all sharers together.
    client_id: str
    #: The last one that was given.
    token: int
    #: "user@host pid command line (note)", where it is known; of a shared lock
    #: who has had it for longest.
    holder: Optional[str]
    #: Free: who released it last, where it is known.
    last_holder: Optional[str]
    #: Seconds since it was acquired; 0 when free.
    held_for: Optional[float]
    #: Seconds until its lease is over, or the last one of its sharers.
    remaining: float
    #: Seconds since 1970, by the database's clock.
    acquired_at: Optional[float]
    expires_at: float
    #: None but from :meth:`Registry.list`.
    region: Optional[str]
    #: How many processes wait; None on Spring's layouts, where nobody knows.
    waiters: Optional[int]
    #: Which of them this registry is, from 1; 0: it does not wait.
    place: int
    #: Who they are, in the order in which they get the lock.
    waiter_names: List[str]
    #: "exclusive" or "shared"; "exclusive" when free.
    mode: str
    #: How many permits the lock has, also when free; 0: it has none.
    permits: int
    #: The sum of its sharers' weights.
    taken: int
    #: How many share it.
    sharers: int
    #: Who they are, who has had it for longest first.
    sharer_names: List[str]
    #: What its leader has published; None: nothing, or nobody leads.
    text: Optional[str]


def decoded(value: Optional[bytes]) -> Optional[str]:
    """A text of the library."""
    return None if value is None else _native.string(value)


def shown(value: Optional[bytes]) -> Optional[str]:
    """A text that is shown to people, and can be written as UTF-8."""
    return None if value is None else value.decode("utf-8", "replace")


def _lines(value: Optional[bytes]) -> List[str]:
    return [line for line in (decoded(value) or "").split("\n") if line]


def info_of(row: Any) -> LockInfo:
    """A row of the library."""
    return LockInfo(
        name=decoded(row.name),
        state=_STATES[row.state],
        key=_native.string(row.key),
        client_id=_native.string(row.client_id),
        token=row.token,
        holder=decoded(row.holder),
        last_holder=decoded(row.last_holder),
        held_for=row.held_ms / 1000 if row.held_ms >= 0 else None,
        remaining=row.remaining_ms / 1000,
        acquired_at=row.acquired_at_us / 1e6 or None,
        expires_at=row.expires_at_us / 1e6,
        region=decoded(row.region),
        waiters=row.waiters if row.waiters >= 0 else None,
        place=row.place,
        waiter_names=_lines(row.waiter_names),
        mode=_MODES[row.mode],
        permits=row.permits,
        taken=row.taken,
        sharers=row.sharers,
        sharer_names=_lines(row.sharer_names),
        text=decoded(row.text),
    )


def rows_of(rows: Any, count: int) -> List[LockInfo]:
    """So many rows of the library, which are freed."""
    try:
        return [info_of(row) for row in rows[:count]]
    finally:
        _native.function("info_free")(rows, count)


__all__ = ["LockInfo", "decoded", "info_of", "rows_of", "shown"]
