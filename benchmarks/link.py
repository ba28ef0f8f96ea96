"""Two hosts on one machine, joined by a link of a given rate and delay: network namespaces `ocsc-a` and `ocsc-b`.

The rate is the kernel's (tc tbf). Where the kernel has netem, it also delays; where it has not (the link then says so), packets pass
through this process, from one tun device to the other, which holds each one back. Needs root, iproute2 and util-linux.
"""

import ctypes
import fcntl
import os
import struct
import subprocess
import threading
import time
from collections import deque
from pathlib import Path
from typing import Self

HOSTS = {'ocsc-a': '10.9.0.1', 'ocsc-b': '10.9.0.2'}
# Large, so that a process that forwards packets has few of them: at 10 Gbit/s, 20,000 a second.
PACKET = 64000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000

# mpirun's way to another host: its first word is the address, the rest the command.
AGENT = """#!/bin/sh
shift
exec ip netns exec ocsc-b unshare --uts sh -c 'hostname ocsc-b; exec sh -c "$*"' sh "$@"
"""


def ip(*words: str) -> None:
    """Runs `ip`."""
    subprocess.run(['ip', *words], check=True, capture_output=True)


class Link:
    """`with Link(gbit, milliseconds, folder) as link: link.mpirun([...])`; a rate of none is unlimited."""

    def __init__(self, gbit: float | None, milliseconds: float, folder: Path):
        self.gbit, self.delay, self.agent = gbit, milliseconds / 1e3, folder / 'agent.sh'
        self.running = True
        self.devices: dict[str, int] = {}
        self.how = ''

    def __enter__(self) -> Self:
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)
        self.remove()
        for name in HOSTS:
            ip('netns', 'add', name)
            ip('-n', name, 'link', 'set', 'lo', 'up')
        if self.delay > 0 and not self.has_netem():
            self.how = 'tc tbf, and packets held back by a process'
            for name in HOSTS:
                self.devices[name] = open_tun(name)
            pairs = [('ocsc-a', 'ocsc-b'), ('ocsc-b', 'ocsc-a')]
            for source, target in pairs:
                self.forward(self.devices[source], self.devices[target])
        else:
            self.how = 'tc netem' if self.delay > 0 else 'tc tbf'
            ip('link', 'add', 'ocsc0', 'netns', 'ocsc-a', 'type', 'veth', 'peer', 'name', 'ocsc0', 'netns', 'ocsc-b')
        for name, address in HOSTS.items():
            ip('-n', name, 'addr', 'add', f'{address}/24', 'dev', 'ocsc0')
            ip('-n', name, 'link', 'set', 'ocsc0', 'mtu', str(PACKET), 'up')
            self.limit(name)
        return self

    def limit(self, name: str) -> None:
        """Sets the rate, and the delay where the kernel can."""
        tc = ['ip', 'netns', 'exec', name, 'tc', 'qdisc', 'add', 'dev', 'ocsc0', 'root']
        if self.how == 'tc netem':
            rate = ['rate', f'{self.gbit}gbit'] if self.gbit else []
            subprocess.run([*tc, 'netem', 'delay', f'{1e3 * self.delay}ms', *rate, 'limit', '100000'], check=True)
        elif self.gbit:
            subprocess.run([*tc, 'tbf', 'rate', f'{self.gbit}gbit', 'burst', '1mb', 'limit', '100mb'], check=True)

    @staticmethod
    def has_netem() -> bool:
        """Whether the kernel can delay packets itself."""
        ip('-n', 'ocsc-a', 'link', 'set', 'lo', 'up')
        tried = ['ip', 'netns', 'exec', 'ocsc-a', 'tc', 'qdisc', 'add', 'dev', 'lo', 'root', 'netem', 'delay', '1ms']
        done = subprocess.run(tried, capture_output=True, check=False).returncode == 0
        if done:
            subprocess.run(['ip', 'netns', 'exec', 'ocsc-a', 'tc', 'qdisc', 'del', 'dev', 'lo', 'root'], check=True)
        return done

    def forward(self, source: int, target: int) -> None:
        """Two threads that hand packets on, each after the delay."""
        waiting: deque[tuple[float, bytes]] = deque()
        arrived = threading.Condition()

        def read() -> None:
            while self.running:
                try:
                    packet = os.read(source, PACKET + 100)
                except OSError:
                    return
                with arrived:
                    waiting.append((time.monotonic() + self.delay, packet))
                    arrived.notify()

        def write() -> None:
            while self.running:
                with arrived:
                    while not waiting:
                        if not arrived.wait(0.2) and not self.running:
                            return
                    due, packet = waiting.popleft()
                # A sleep overshoots by 0.06 ms or so.
                while (left := due - time.monotonic()) > 0:
                    if left > 2e-4:
                        time.sleep(left - 1e-4)
                try:
                    os.write(target, packet)
                except OSError:
                    pass

        for work in (read, write):
            threading.Thread(target=work, daemon=True).start()

    def mpirun(self, words: list[str], ranks: int = 2) -> subprocess.CompletedProcess:
        """Runs a command by so many processes, of which every second one is on the other host."""
        a, b = HOSTS.values()
        mca = {
            'plm_rsh_agent': str(self.agent),
            'btl': 'tcp,self',
            'btl_tcp_if_include': '10.9.0.0/24',
            'oob_tcp_if_include': '10.9.0.0/24',
            'mpi_yield_when_idle': '1',
        }
        settings = [word for key, value in mca.items() for word in ('--mca', key, value)]
        hosts = f'{a}:{ranks - ranks // 2},{b}:{ranks // 2}'
        mpirun = ['mpirun', '--bind-to', 'none', *settings, '-H', hosts, '-n', str(ranks), *words]
        script = 'hostname ocsc-a; exec "$@"'
        return subprocess.run(
            ['ip', 'netns', 'exec', 'ocsc-a', 'unshare', '--uts', 'sh', '-c', script, 'sh', *mpirun],
            check=True,
            capture_output=True,
            text=True,
        )

    @staticmethod
    def remove() -> None:
        """Removes what an earlier run left."""
        for name in HOSTS:
            subprocess.run(['ip', 'netns', 'del', name], capture_output=True, check=False)

    def __exit__(self, *_: object) -> None:
        self.running = False
        for device in self.devices.values():
            os.close(device)
        self.remove()


def open_tun(namespace: str) -> int:
    """A new tun device `ocsc0` in a namespace; a thread changes into it, and the device stays."""
    opened: list[int] = []

    def work() -> None:
        with open(f'/run/netns/{namespace}') as place:
            if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), 'setns')
        device = os.open('/dev/net/tun', os.O_RDWR)
        fcntl.ioctl(device, TUNSETIFF, struct.pack('16sH', b'ocsc0', IFF_TUN | IFF_NO_PI))
        opened.append(device)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return opened[0]
