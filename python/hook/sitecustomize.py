# SPDX-License-Identifier: Apache-2.0
"""Python runs this first when its directory is on PYTHONPATH, where `flyball run` puts it. It starts the hook, then
runs the module of the same name that it hides. Old Pythons read this file too, so it is written for all of them.
"""

import sys


def _hidden():
    """Runs the sitecustomize that would have been found without this directory, under its own name."""
    here = __file__.rpartition("/")[0]
    places = [path for path in sys.path if path.rstrip("/") != here.rstrip("/")]
    if sys.version_info < (3, 4):
        import imp

        try:
            found = imp.find_module("sitecustomize", places)
        except ImportError:
            return
        imp.load_module("sitecustomize", *found)
        return
    # importlib.util would import much more.
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", places)
    if spec is None or spec.loader is None:
        return
    module = type(sys)("sitecustomize")
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    module.__package__, module.__cached__ = spec.parent, spec.cached
    if spec.submodule_search_locations is not None:
        module.__path__ = spec.submodule_search_locations
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


# Where two such directories each look for the other, the second time ends it.
if "flyball_hook" not in sys.modules:
    if sys.version_info >= (3, 6):
        try:
            import flyball_hook

            flyball_hook.watch()
        except Exception:
            pass
    else:
        sys.modules["flyball_hook"] = sys
    _hidden()
