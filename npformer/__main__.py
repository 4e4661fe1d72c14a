"""`python -m npformer` is the command line."""

import sys

from npformer.tools.cli import main

sys.exit(main())
