"""The variants of label propagation, a file each: the program, and the function that runs it."""
