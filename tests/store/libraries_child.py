"""Opens a store, stores a record or none, looks a few times at what there is to do; says whether numpy was loaded."""

from __future__ import annotations

import asyncio
import sys

from terrazzo.ports.store import Record
from terrazzo.runtime.supervisor import Supervisor
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_adapters.rocksdb import store as store_module

LOOKS = 5


async def main(path: str, settled_s: float, *, stores: bool) -> None:
    store_module._LOOK_S, store_module._SETTLED_S = 0.01, settled_s
    looked = asyncio.Semaphore(0)
    look = RocksStore._look_at_memory

    async def look_and_tell(store: RocksStore) -> None:
        looked.release()
        await look(store)

    RocksStore._look_at_memory = look_and_tell  # type: ignore[method-assign]
    store = await RocksStore.open(path, tasks=Supervisor(on_stop=lambda: None))
    if stores:
        await store.append([Record("m/1", 1_700_000_000_000_000, b"\x80")])
    looked = asyncio.Semaphore(0)
    for _ in range(LOOKS):
        await looked.acquire()
    await store.close()
    print("numpy" in sys.modules)


asyncio.run(main(sys.argv[1], float(sys.argv[2]), stores=sys.argv[3] == "stores"))
