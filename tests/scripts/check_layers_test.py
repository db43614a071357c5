"""check_layers.py on small trees made for the purpose: each rule once broken, once kept."""
import os
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts"))
sys.dont_write_bytecode = True
import check_layers  # noqa: E402


def faults_of(files):
    """Faults in a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return check_layers.faults(root)


class Layers(unittest.TestCase):
    def check_one_fault(self, files, *words):
        found = faults_of(files)
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_every_layer_includes_itself_and_what_is_left_of_it(self):
        for i, layer in enumerate(check_layers.LAYERS):
            for j, target in enumerate(check_layers.LAYERS):
                files = {f"{layer}/a.cpp": f'\n#include "{target}/b.h"\n', f"{target}/b.h": ""}
                if j <= i:
                    self.assertEqual(faults_of(files), [])
                else:
                    self.check_one_fault(files, f"{layer}/a.cpp:2: includes {target}/b.h", "may not include")

    def test_tests_include_all_and_nobody_includes_tests(self):
        self.assertEqual(faults_of({"tests/a.cpp": '#include "cli/b.h"\n', "cli/b.h": ""}), [])
        self.check_one_fault({"cli/a.cpp": '#include "tests/b.h"\n', "tests/b.h": ""}, "may not include tests")

    def test_public_header_sees_all_but_bench_and_cli(self):
        self.assertEqual(faults_of({"include/convoy/convoy.h": '#include "models/b.h"\n', "models/b.h": ""}), [])
        self.check_one_fault({"include/convoy/convoy.h": '#include "cli/b.h"\n', "cli/b.h": ""}, "may not include cli")

    def test_parts_of_the_engine(self):
        allowed = [("autograd", "tensor"), ("ops", "autograd"), ("nn", "ops"), ("optim", "nn"), ("data", "io"),
                   ("parallel", "optim"), ("train", "data"), ("train", "parallel")]
        for part, target in allowed:
            files = {f"engine/{part}/a.h": f'#include "engine/{target}/b.h"\n', f"engine/{target}/b.h": ""}
            self.assertEqual(faults_of(files), [], (part, target))
            files = {f"engine/{target}/a.h": f'#include "engine/{part}/b.h"\n', f"engine/{part}/b.h": ""}
            self.check_one_fault(files, f"engine/{target} may include")

    def test_data_and_io_know_no_tensor(self):
        for part in ("data", "io"):
            files = {f"engine/{part}/a.h": '#include "engine/tensor/b.h"\n', "engine/tensor/b.h": ""}
            self.check_one_fault(files, f"engine/{part} may include")

    def test_kernels_base_knows_no_backend(self):
        files = {"kernels/base/a.h": '#include "kernels/cpu/b.h"\n', "kernels/cpu/b.h": ""}
        self.check_one_fault(files, "kernels/base may include")
        self.assertEqual(faults_of({"kernels/base/a.cpp": '#include "kernels/b.h"\n', "kernels/b.h": ""}), [])

    def test_vendor_headers_have_one_place(self):
        cases = [("cuda_runtime.h", "kernels/cuda/a.cu", "engine/ops/a.cpp"),
                 ("mpi.h", "comm/mpi_communicator.cpp", "comm/ring.cpp"),
                 ("mpi.h", "comm/world.cpp", "cli/a.cpp"),
                 ("mpi.h", "bench/peers/allreduce.cpp", "bench/allreduce.cpp"),
                 ("nccl.h", "comm/nccl_communicator.cpp", "kernels/cuda/a.cu"),
                 ("oneapi/dnnl/dnnl.hpp", "kernels/cpu/conv2d.cpp", "kernels/reference/conv2d.cpp"),
                 ("cblas.h", "kernels/cpu/linear.cpp", "engine/ops/linear.cpp")]
        for header, good, bad in cases:
            self.assertEqual(faults_of({good: f"#include <{header}>\n"}), [])
            self.check_one_fault({bad: f"#include <{header}>\n"}, f"{bad}:1", header, "vendor header")

    def test_files_are_named_from_the_root(self):
        files = {"engine/nn/a.cpp": '#include "b.h"\n', "engine/nn/b.h": ""}
        self.check_one_fault(files, "no such file from the root")
        files = {"engine/nn/a.cpp": '#include <engine/nn/b.h>\n', "engine/nn/b.h": ""}
        self.check_one_fault(files, "in quotes")

    def test_a_file_outside_the_design(self):
        self.check_one_fault({"misc/a.cpp": ""}, "misc/a.cpp", "no folder of the design")

    def test_build_folders_are_not_read(self):
        self.assertEqual(faults_of({"build-asan/a.cpp": '#include "nowhere.h"\n'}), [])


if __name__ == "__main__":
    unittest.main()
