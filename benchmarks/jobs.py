"""Long benchmarks in jobs, each kept as it ends: which are asked for, and which are left."""

import time


def add_options(parser):
    """Add what says which jobs are to be done."""
    parser.add_argument(
        "--only",
        default="",
        help="jobs by the words of their names: S,M is either, S+attention both",
    )
    parser.add_argument("--resume", action="store_true", help="keep the jobs that are done")
    parser.add_argument("--minutes", type=float, help="start no job after so many minutes")


def wanted(name, only):
    """Return whether --only asks for a job: "S,M" either word, "train+S" both."""
    words = name.split()
    return not only or any(all(w in words for w in item.split("+")) for item in only.split(","))


def pending(everything, done, options):
    """Yield (name, function) of the jobs that are asked for and not done, until time is up."""
    began = time.monotonic()
    for name, measure in everything.items():
        if name in done or not wanted(name, options.only):
            continue
        if options.minutes and time.monotonic() - began > 60 * options.minutes:
            print("time is up; go on with --resume")
            return
        yield name, measure


def in_one_line(problem):
    """Return the class of an exception and the first line of what it says."""
    return f"{type(problem).__name__}: {str(problem).strip()}".splitlines()[0]
