"""What pyproject.toml cannot say: a wheel with the C library in it is for one
platform, and for every Python 3 there."""

import glob

from setuptools import setup
from setuptools.dist import Distribution
from wheel.bdist_wheel import bdist_wheel


class PlatformDistribution(Distribution):
    """One that goes into the folder for what is compiled."""

    def has_ext_modules(self):
        return True


class PlatformWheel(bdist_wheel):
    """py3-none-PLATFORM: it has no module that is bound to one Python."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


if glob.glob("sqlock/libsqlock.so.*"):
    setup(distclass=PlatformDistribution, cmdclass={"bdist_wheel": PlatformWheel})
else:
    setup()
