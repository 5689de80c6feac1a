"""The tests themselves: where those that need a GPU are run."""

from collections import Counter

import conftest
import gpu_suite


def test_every_file_that_needs_a_gpu_is_in_one_part_of_its_suite(request):
    listed = Counter(path for part in gpu_suite.PARTS for path in gpu_suite.files_of(part))
    assert set(listed.values()) == {1}
    assert all(path.is_file() for path in listed)
    # those of this run: of all files, where all are run
    collected, needing = request.config.stash[conftest.FILES]
    assert needing == collected & set(listed)
