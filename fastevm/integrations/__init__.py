"""fastevm behind the interfaces of other libraries, which each need that library."""
