import sys

from glp_rapids.cli import main

sys.exit(main())
