#!/usr/bin/env python3
"""What `meson install` gives: outside programs build with pkg-config and with CMake, also after the folder was moved.

Usage: install_test.py SOURCE BUILD MESON -- COMPILER [arguments]
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

LIMIT = 240  # seconds, of each command
SOURCE = BUILD = MESON = ""
COMPILER = []
CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(outside CXX)
find_package(Convoy 9 QUIET)
if(Convoy_FOUND)
  message(FATAL_ERROR "another interface was taken for ours")
endif()
find_package(Convoy 0.1 REQUIRED)
file(GLOB programs *.cpp)
foreach(path ${programs})
  get_filename_component(program ${path} NAME_WE)
  add_executable(${program} ${path})
  target_link_libraries(${program} PRIVATE Convoy::convoy)
endforeach()
"""


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{command} gave {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def losses(text):
    return [float(line.split("Loss: ")[1]) for line in text.splitlines()]


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="convoy-")
        cls.addClassCleanup(shutil.rmtree, folder)
        run(MESON, "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", os.path.join(folder, "stage"))
        cls.prefix = os.path.join(folder, "moved")
        os.rename(os.path.join(folder, "stage") + cls.configured_prefix(), cls.prefix)
        cls.folder = folder

    @staticmethod
    def configured_prefix():
        options = json.loads(run(MESON, "introspect", BUILD, "--buildoptions"))
        return next(option["value"] for option in options if option["name"] == "prefix")

    def setUp(self):
        self.place = tempfile.mkdtemp(dir=self.folder)
        with open(os.path.join(SOURCE, "tests", "reference", "small.json"), encoding="utf-8") as file:
            self.expected = next(case for case in json.load(file) if case["model"] == "toy")["losses"]

    def find(self, name):
        found = [os.path.join(at, name) for at, _, files in os.walk(self.prefix) if name in files]
        self.assertEqual(len(found), 1, f"{name} in {self.prefix}: {found}")
        return found[0]

    def examples(self):
        found = glob.glob(os.path.join(SOURCE, "examples", "*.cpp"))
        self.assertGreater(len(found), 4)
        return found

    def check_programs(self, folder):
        """Programs of one worker and of two, in the folder in which they were built."""
        found = losses(run(os.path.join(folder, "toy_two_devices"), cwd=self.place))
        self.assertEqual(len(found), len(self.expected))
        for loss, expected in zip(found, self.expected):
            self.assertAlmostEqual(loss, expected, delta=1e-5 * expected)
        for name, words in (("line", []), ("toy", ["2"]), ("data_parallel", ["cpu:0"]), ("checkpoint", ["2"]),
                            ("resnet50_pipeline", ["4"])):
            self.assertNotEqual(run(os.path.join(folder, name), *words, cwd=self.place), "")

    def test_pkg_config_says_all_that_a_program_needs(self):
        environment = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(self.find("convoy.pc"))}
        flags = run("pkg-config", "--cflags", "--libs", "convoy", env=environment).split()
        # A program's own folders may bear the names of ours.
        os.makedirs(os.path.join(self.place, "engine", "nn"))
        with open(os.path.join(self.place, "engine", "nn", "module.h"), "w", encoding="utf-8") as file:
            file.write("#error not ours\n")
        for source in self.examples():
            program = os.path.splitext(os.path.basename(source))[0]
            run(*COMPILER, "-std=c++20", "-I.", source, *flags, "-o", program, cwd=self.place)
        self.check_programs(self.place)

    def test_cmake_finds_the_package(self):
        for source in self.examples():
            shutil.copy(source, self.place)
        with open(os.path.join(self.place, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(CMAKE)
        environment = {**os.environ, "CXX": COMPILER[0], "CXXFLAGS": " ".join(COMPILER[1:])}
        run("cmake", "-G", "Ninja", "-S", ".", "-B", "build", "-DCMAKE_PREFIX_PATH=" + self.prefix, cwd=self.place,
            env=environment)
        run("cmake", "--build", "build", cwd=self.place)
        self.check_programs(os.path.join(self.place, "build"))

    def test_the_program_runs_where_it_was_moved_to(self):
        self.assertRegex(run(os.path.join(self.prefix, "bin", "convoy"), "--version"), r"^convoy \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    SOURCE, BUILD, MESON, _, *COMPILER = sys.argv[1:]
    if os.path.basename(COMPILER[0]) == "ccache":
        del COMPILER[0]
    os.environ.pop("LD_LIBRARY_PATH", None)  # meson's, which leads to the build folder
    unittest.main(argv=sys.argv[:1])
