"""The cost of a message: on three networks, as published, and within a machine, as measured."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Link:
    """A message of s bytes takes ``latency + s / bandwidth`` seconds."""

    name: str
    latency: float
    """Seconds for an empty message, one way, between two programs."""
    bandwidth: float
    """Bytes per second, one way."""
    source: str = ""

    @property
    def per_byte(self):
        """Return the seconds that each byte takes."""
        return 1.0 / self.bandwidth


@dataclass(frozen=True)
class Cluster:
    """Ranks, the same number on each machine, in the order of machines."""

    ranks: int
    link: Link
    """The link between machines, which the ranks of a machine share."""
    on_machine: int = 1
    """Ranks on a machine."""
    memory: Link | None = None
    """The link between the ranks of a machine."""
    add: float = 0.0
    """Seconds per byte to add one vector to another."""
    call: float = 0.0
    """Seconds of Python and MPI in each meeting, whatever the link."""

    def __post_init__(self):
        if self.ranks & (self.ranks - 1) or self.on_machine & (self.on_machine - 1):
            raise ValueError(
                f"{self.ranks} ranks, {self.on_machine} on a machine; expected powers of two"
            )
        if self.ranks % self.on_machine:
            raise ValueError(
                f"{self.ranks} ranks, {self.on_machine} on a machine; expected whole machines"
            )
        if self.on_machine > 1 and self.memory is None:
            raise ValueError("ranks share machines; expected memory=, the link between them")

    @property
    def machines(self):
        """Return how many there are."""
        return self.ranks // self.on_machine

    def without_latency(self):
        """Return the same with messages whose only cost is their bytes."""
        return replace(self, link=replace(self.link, latency=0.0), call=0.0)

    def without_bytes(self):
        """Return the same with links of infinite bandwidth, and sums that take no time."""
        return replace(self, link=replace(self.link, bandwidth=float("inf")), add=0.0)


NETWORKS = (
    Link(
        "10 Gbit/s Ethernet, TCP",
        37.8e-6,
        9.39e9 / 8,
        "1 byte in 37.8 us, at most 9,390 Mbit/s, by Open MPI 1.8 between two hosts without a "
        "switch: M. A. Javed, [Problem in Open MPI (v1.8) Performance on 10G Ethernet]"
        "(https://www.open-mpi.org/community/lists/users/2014/04/24241.php), Open MPI users' list, "
        "April 2014. The bandwidth was reached after tuning, the latency measured before",
    ),
    Link(
        "100 Gbit/s Ethernet, EFA",
        9.87e-6,
        4194304 / (725.62e-6 - 9.87e-6),
        "1 byte in 9.87 us and 4 MiB in 725.62 us by `osu_latency` 7.5 with Intel MPI 2021.6, on "
        "two hpc6a instances of AWS: [comment of 20 August 2025]"
        "(https://github.com/aws/aws-parallelcluster/issues/6449) by stefan-vaisala. One message "
        "at a time gets about half of the 100 Gbit/s",
    ),
    Link(
        "200 Gbit/s HDR InfiniBand",
        1.2e-6,
        192e9 / 8,
        "1 byte in 1.2 us and 192 Gbit/s one way, by RDMA: Microsoft, [HBv3-series virtual machine "
        "performance](https://github.com/MicrosoftDocs/azure-docs/blob/main/articles/"
        "virtual-machines/hbv3-performance.md), 2023",
    ),
)
