"""npdg: partial differential equations solved by natural primal-dual hybrid gradients.

The public names are listed in `__init__.pyi` and loaded on first use, so that `import npdg` and the command line's help
do not wait for jax.
"""

import lazy_loader

from npdg.services import provide

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

provide("plot", "npdg.runs.figures.draw:plot")
provide("plot_history", "npdg.runs.figures.draw:plot_history")
provide("save", "npdg.runs.save:save")
provide("kept", "npdg.runs.cache:kept")
