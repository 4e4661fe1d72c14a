"""Long benchmarks are divided into jobs: which are requested, and which are left to do?"""

import time


def add_options(parser):
    """Add the options that select jobs."""
    parser.add_argument(
        "--only",
        default="",
        help="select jobs by words in their names: S,M is either word, S+attention both",
    )
    parser.add_argument("--resume", action="store_true", help="skip the jobs that are done")
    parser.add_argument("--minutes", type=float, help="start no job after this many minutes")


def wanted(name, only):
    """Return whether --only selects a job: "S,M" is either word, "train+S" both."""
    words = name.split()
    return not only or any(all(w in words for w in item.split("+")) for item in only.split(","))


def pending(everything, done, options):
    """Yield (name, function) of the selected jobs that are not done, until time is up."""
    began = time.monotonic()
    for name, measure in everything.items():
        if name in done or not wanted(name, options.only):
            continue
        if options.minutes and time.monotonic() - began > 60 * options.minutes:
            print("time is up; continue with --resume")
            return
        yield name, measure


def in_one_line(problem):
    """Return the class of an exception and the first line of its message."""
    return f"{type(problem).__name__}: {str(problem).strip()}".splitlines()[0]
