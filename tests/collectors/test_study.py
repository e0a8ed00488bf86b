"""What a study says of itself."""

from __future__ import annotations

from collectors.study import fixes_kv


def test_room_for_kv() -> None:
    assert fixes_kv(["--num-gpu-blocks-override", "7"])
    assert fixes_kv(["--kv-cache-memory-bytes=1G"])
    assert not fixes_kv(["--kv-cache-dtype", "fp8"])
