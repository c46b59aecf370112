"""The commands of ``fastevm pay``: each module has its ``add_arguments`` and its ``run``."""
