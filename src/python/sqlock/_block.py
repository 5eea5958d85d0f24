"""The end of blocks: of ``with`` and ``async with``, by one method each."""

from __future__ import annotations

from types import TracebackType
from typing import Optional, Type, TypeVar

Self = TypeVar("Self", bound="Block")


class Ending:
    """What ``with`` ends."""

    def _end_block(self, error: Optional[BaseException]) -> None:
        """End it, after the exception of the block, if there was one."""
        raise NotImplementedError

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._end_block(error)


class Block(Ending):
    """What ``with`` gives as it is, and ends."""

    def __enter__(self: Self) -> Self:
        return self


class AsyncEnding:
    """As :class:`Ending`, for asyncio."""

    async def _end_block(self, error: Optional[BaseException]) -> None:
        raise NotImplementedError

    def _drop(self) -> None:
        """Let go of what the block has: the collector ends a task whose loop is
        gone, and there nothing can be awaited."""
        raise NotImplementedError

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if isinstance(error, GeneratorExit):
            self._drop()
        else:
            await self._end_block(error)
