"""Locks kept in the SQL database an application already has.

::

    import sqlock

    registry = sqlock.open("postgresql://...")
    with registry.lock("invoices", wait=5) as lease:
        ...
        lease.check()  # raises LockLost once it is not ours any more

A lock is a name; a holder has a lease, which is renewed in the background and
ends by the database's clock otherwise.  Each lease has its own owner, so threads
and tasks exclude each other just as processes do.  Times are seconds.
sqlock(3) and sqlock-failures(7) have the promises.
"""

from ._quorum import Quorum, aacquire_quorum, acquire_quorum, aquorum, quorum
from .aio import AsyncLocking
from .atx import AsyncStock, AsyncTransaction
from .errors import AccessDenied, Busy, Cancelled, Closed, Conflict, DatabaseError
from .errors import Deadlock, Error, InUse, Insufficient, Invalid, LockExpired, LockLost
from .errors import NotFound, NotOwner, NotSupported, OrderMismatch, OutOfMemory
from .errors import OutOfResources, ReadOnly, Retry, SchemaError, Timeout
from .errors import Uncertain, Unreachable, UsedAfterFork
from .info import LockInfo
from .leader import AsyncLeader, Leader
from .lease import Lease, Leases
from .registry import Locking, Registry, Stats, Times, create_once_schema
from .registry import create_schema, create_stock_schema, open, version
from .stock import Answer, Stock, StockStats
from .transaction import Rows, Table, Transaction

#: For ``wait``: as long as it takes.
FOREVER = None

__all__ = [
    "AccessDenied",
    "Answer",
    "AsyncLeader",
    "AsyncLocking",
    "AsyncStock",
    "AsyncTransaction",
    "Busy",
    "Cancelled",
    "Closed",
    "Conflict",
    "DatabaseError",
    "Deadlock",
    "Error",
    "FOREVER",
    "InUse",
    "Insufficient",
    "Invalid",
    "Leader",
    "Lease",
    "Leases",
    "LockExpired",
    "LockInfo",
    "LockLost",
    "Locking",
    "NotFound",
    "NotOwner",
    "NotSupported",
    "OrderMismatch",
    "OutOfMemory",
    "OutOfResources",
    "Quorum",
    "ReadOnly",
    "Registry",
    "Retry",
    "Rows",
    "SchemaError",
    "Stats",
    "Stock",
    "StockStats",
    "Table",
    "Timeout",
    "Times",
    "Transaction",
    "Uncertain",
    "Unreachable",
    "UsedAfterFork",
    "aacquire_quorum",
    "acquire_quorum",
    "aquorum",
    "create_once_schema",
    "create_schema",
    "create_stock_schema",
    "open",
    "quorum",
    "version",
]
