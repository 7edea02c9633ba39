"""Builds in temporary folders: a copy of the modules below ``conf/`` would be tested, counted and read with the site's own."""

from tempfile import mkdtemp

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildModules(build_py):
    """All modules of the folder but this file."""

    def find_package_modules(self, *where):
        return [found for found in super().find_package_modules(*where) if found[1] != "setup"]


places = {"build": {"build_base": mkdtemp()}, "egg_info": {"egg_base": mkdtemp()}}
setup(cmdclass={"build_py": BuildModules}, options=places)
