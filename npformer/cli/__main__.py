"""`python -m npformer.cli` is the command line."""

import sys

from npformer.cli import main

sys.exit(main())
