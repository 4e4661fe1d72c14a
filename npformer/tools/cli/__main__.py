"""`python -m npformer.tools.cli` is the command line."""

import sys

from npformer.tools.cli import main

sys.exit(main())
