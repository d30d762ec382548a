"""What `python3 pilot.pyz` runs. Any Python, however old, must be able to read it, to learn that it is too old."""

import sys

if sys.version_info < (3, 8):
    sys.stderr.write("podwright: the pilot needs Python 3.8 or newer, this is %d.%d\n" % sys.version_info[:2])
    sys.exit(69)


class Modules:
    """The pilot's bytecode in one piece: Python's own import from a zip reads, unpacks and loads each module twice."""

    def __init__(self, archive, packed):
        import marshal

        self._archive, self._load, self._codes = archive, marshal.loads, marshal.loads(packed)
        self._packages = {name.rpartition(".")[0] for name in self._codes}
        self.get_data = archive.get_data

    def find_spec(self, name, path=None, target=None):
        """Say where a module of the pilot is."""
        if name not in self._codes:
            return None
        spec = type(__spec__)(name, self, origin=self._file(name), is_package=name in self._packages)
        spec.has_location = True
        return spec

    def create_module(self, spec):
        """Leave it to Python."""

    def exec_module(self, module):
        """Load the module that is imported, and no other."""
        exec(self._load(self._codes[module.__name__]), module.__dict__)

    def _file(self, name):
        inner = "/__init__.py" if name in self._packages else ".py"
        return self._archive.archive + "/" + name.replace(".", "/") + inner


def use_bytecode(archive):
    """Take the bytecode where it is of this Python; any other compiles the sources beside it."""
    from _frozen_importlib_external import MAGIC_NUMBER

    try:
        data = archive.get_data("modules")
    except OSError:
        return
    if data.startswith(MAGIC_NUMBER):
        sys.meta_path.insert(0, Modules(archive, data[len(MAGIC_NUMBER) :]))


use_bytecode(__loader__)
from pilot.main import main

sys.exit(main(sys.argv[1:]))
