"""The subcommands of ``fastevm pay``: each module has ``add_arguments`` and ``run``."""
