"""`python -m npformer` is the command line."""

import sys

from npformer.cli import main

sys.exit(main())
