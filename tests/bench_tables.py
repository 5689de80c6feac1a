"""What a bench prints, read back."""

import argparse
import json

from glp_rapids import bench


def tables_of(*arguments):
    parser = argparse.ArgumentParser()
    bench.add_benches(parser)
    return json.loads(bench.run(parser.parse_args([*arguments, "--json"])))
