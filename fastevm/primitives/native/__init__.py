"""C functions inside the extension modules of other packages."""
