"""What GlusterFS is told by files: a brick that serves a folder, and a client that distributes files over bricks."""

from collections.abc import Sequence

_PORT = 24010
_BRICK_THREADS = 16


def _volume(name: str, kind: str, options: Sequence[str] = (), below: Sequence[str] = ()) -> str:
    lines = [f"volume {name}", f"  type {kind}", *(f"  option {option}" for option in options)]
    return "\n".join([*lines, *([f"  subvolumes {' '.join(below)}"] if below else []), "end-volume", ""])


def brick_text(folder: str) -> str:
    served = ("transport-type tcp", f"transport.socket.listen-port {_PORT}", "auth.addr.brick.allow *")
    return "".join(
        (
            _volume("posix", "storage/posix", [f"directory {folder}"]),
            _volume("locks", "features/locks", (), ["posix"]),
            _volume("threads", "performance/io-threads", [f"thread-count {_BRICK_THREADS}"], ["locks"]),
            _volume("brick", "debug/io-stats", (), ["threads"]),
            _volume("server", "protocol/server", served, ["brick"]),
        )
    )


def client_text(hosts: Sequence[str]) -> str:
    names = [f"client{number}" for number, _ in enumerate(hosts, 1)]
    clients = [
        _volume(name, "protocol/client", ["transport-type tcp", f"remote-host {host}", f"remote-port {_PORT}", "remote-subvolume brick"])
        for name, host in zip(names, hosts, strict=True)
    ]  # fmt: skip
    return "".join((*clients, _volume("distribute", "cluster/distribute", (), names)))
