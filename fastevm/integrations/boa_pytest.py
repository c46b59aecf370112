"""A pytest plugin that runs titanoboa on fastevm: ``-p fastevm.integrations.boa_pytest``."""

import boa

from fastevm.integrations.boa import Env

boa.set_env(Env())
