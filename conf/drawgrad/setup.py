"""Builds in a temporary folder: a copy of the modules below ``conf/`` would be tested, counted and read with the site's own."""

from tempfile import mkdtemp

from setuptools import setup

setup(options={"build": {"build_base": mkdtemp()}, "egg_info": {"egg_base": mkdtemp()}})
