"""What streams from host memory are made of: pinned arrays, copies ahead, a watch on memory."""
