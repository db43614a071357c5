"""sizes.py: which functions it finds, and how long they are."""
import os
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts"))
sys.dont_write_bytecode = True
import sizes  # noqa: E402


class Functions(unittest.TestCase):
    def check(self, text, *expected):
        self.assertEqual(sizes.functions(text), list(expected))

    def test_a_plain_function_counts_from_its_head_to_its_brace(self):
        self.check("int x;\n\nint f(int a) {\n  return a;\n}\n", ("f", 3, 3))

    def test_control_flow_and_lambdas_belong_to_the_function(self):
        self.check("void f() {\n  if (a) {\n    g([&] {\n      h();\n    });\n  }\n}\n", ("f", 1, 7))

    def test_members_in_namespaces_and_classes(self):
        text = "namespace a {\nclass B {\n public:\n  int c() const { return 1; }\n};\n}\nint a::B::d() {\n}\n"
        self.check(text, ("c", 4, 1), ("a::B::d", 7, 2))

    def test_constructors_with_braces_in_the_initialisers(self):
        self.check("A::A(int n)\n    : n_{n}, m_(n), k_{1} {\n  g();\n}\n", ("A::A", 1, 4))

    def test_default_arguments_with_braces(self):
        self.check("void f(int a = {}, int b = {});\nvoid g(int a = {}) {\n}\n", ("g", 2, 2))

    def test_tables_types_and_macros_are_no_functions(self):
        self.check("constexpr int t[] = {f(1), 2};\nenum class E { a };\nstruct S {\n  int a{1};\n};\n"
                   "#define M(x) \\\n  do { \\\n  } while (0)\n")

    def test_comments_and_strings_with_braces(self):
        self.check('// f() {\n/* g() { */\nint h() {\n  return k("}{", \'{\', R"({{)");\n}\n', ("h", 3, 3))

    def test_templates_and_operators(self):
        text = "template <class T>\nT f(T a) {\n}\nbool A::operator==(const A& b) const {\n}\n"
        self.check(text, ("f", 1, 3), ("A::operator==", 4, 2))

    def test_test_cases_count(self):
        self.check('TEST_CASE("a b") {\n  REQUIRE(true);\n}\n', ("TEST_CASE", 1, 3))


class Numbers(unittest.TestCase):
    def test_quantiles(self):
        self.assertEqual(sizes.quantile([5, 1, 3], 0.5), 3)
        self.assertEqual(sizes.quantile(range(1, 11), 0.9), 10)
        self.assertEqual(sizes.quantile([], 0.9), 0)


if __name__ == "__main__":
    unittest.main()
