"""static_gates.py: what it reads from cuobjdump's texts, and what it finds wrong."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import static_gates as gates  # noqa: E402

USAGE = """
arch = sm_80
Resource usage:
 Common:
  GLOBAL:0
 Function _Z1fv:
  REG:40 STACK:8 SHARED:16 LOCAL:0 CONSTANT[0]:432 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
CODE = """
\tcode for sm_80
\t\tFunction : _Z1fv
        /*0000*/                   MOV R1, c[0x0][0x28] ;                   /* 0x00000a0000017a02 */
        /*0010*/              @!P0 HMMA.16816.F32.BF16 R4, R8, R12, R4 ;    /* 0x0000000000000000 */
        /*0020*/                   STL.64 [R1], R2 ;                        /* 0x0000000000000000 */
        /*0030*/               @P1 LDSM.16.M88.4 R8, [R9] ;                 /* 0x0000000000000000 */
"""
GOOD = {"REG": 40, "STACK": 0, "SHARED": 0, "LOCAL": 0, **dict.fromkeys(gates.COUNTED, 0), "HMMA": 8, "LDSM": 4,
        "LDGSTS": 2, "FFMA": 1, "LDL": 0, "STL": 0}
SIMT = ("simt", "simt_kernel<64, ForwardProduct>", "80")
MMA = ("mma", "mma_kernel<float>", "80")


class Reading(unittest.TestCase):
    def test_resource_usage(self):
        found = gates.resource_usage(USAGE)["80", "_Z1fv"]
        self.assertEqual((found["REG"], found["STACK"], found["SHARED"], found["LOCAL"]), (40, 8, 16, 0))

    def test_instructions(self):
        found = gates.instruction_counts(CODE)["80", "_Z1fv"]
        self.assertEqual({key: n for key, n in found.items() if n}, {"HMMA": 1, "STL": 1, "LDSM": 1})

    def test_short_names(self):
        for name, short in (("void convoy::cuda::(anonymous namespace)::f<convoy::Bf16, 8>(int, g*)", "f<Bf16, 8>"),
                            ("convoy::cuda::g(void (*)(int))", "g"),
                            ("void convoy::cuda::h<(convoy::Unary)2, float>(float*)", "h<2, float>")):
            self.assertEqual(gates.short_name(name), short)


class Findings(unittest.TestCase):
    def found(self, **changes):
        return list(gates.findings({SIMT: GOOD, MMA: {**GOOD, **changes}}, ["80"]))

    def test_nothing(self):
        self.assertEqual(self.found(), [])

    def test_local_memory(self):
        self.assertEqual(self.found(STACK=8, STL=1), ["mma: mma_kernel<float>, sm_80: STACK is 8, expected 0",
                                                      "mma: mma_kernel<float>, sm_80: STL is 1, expected 0"])

    def test_instructions_and_architectures(self):
        self.assertEqual(self.found(LDSM=0), ["mma: mma_kernel<float>, sm_80: has no LDSM"])
        missing = list(gates.findings({SIMT: GOOD, MMA: GOOD}, ["80", "90a"]))
        self.assertIn("simt: simt_kernel<64, ForwardProduct> is not compiled for sm_90a", missing)
        without = list(gates.findings({SIMT: GOOD}, ["80"]))
        self.assertEqual(len(without), len(gates.INSTRUCTIONS) - 1, without)  # one is that of simt_kernel
        self.assertIn("no kernel matches ^mma_kernel<: its instructions cannot be looked for", without)

    def test_the_table(self):
        text = gates.table_text({SIMT: GOOD, MMA: GOOD}, ["80"], "13.0")
        self.assertEqual(list(gates.differences(text, text)), [])
        changed = gates.table_text({SIMT: {**GOOD, "REG": 41}}, ["80"], "13.0")
        self.assertEqual(list(gates.differences(text, changed)),
                         ["mma.cu: mma_kernel<float>: table 40 0, build has none",
                          "simt.cu: simt_kernel<64, ForwardProduct>: table 40 0, build 41 0"])


if __name__ == "__main__":
    unittest.main()
