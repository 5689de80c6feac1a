"""``python -m glp_rapids``: the command line, where `glp-rapids` is not on the path."""

import sys

from glp_rapids.cli import main

sys.exit(main())
