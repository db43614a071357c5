#include "tests/kernels/torch_values.h"

namespace convoy::testing {
namespace {

const std::map<std::string, Digest>& stored_values() {
  static const std::map<std::string, Digest> values = {
#include "tests/kernels/torch_values.inc"
  };
  return values;
}

}  // namespace

std::vector<ExpectedDigest> torch_values(const std::string& key,
                                         const std::vector<std::string>& results) {
  std::vector<ExpectedDigest> expected;
  for (const std::string& result : results) {
    const std::string probe = key + "/" + result;
    expected.push_back({result, probe, stored_values().at(probe)});
  }
  return expected;
}

}  // namespace convoy::testing
