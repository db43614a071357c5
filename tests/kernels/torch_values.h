// Results of kernels that PyTorch has computed; made by tests/fixtures/make_kernel_values.py.
#pragma once

#include <string>
#include <vector>

#include "tests/support/op_case.h"

namespace convoy::testing {

/// The stored digests of the given results of the case `key`; a missing one is an error.
std::vector<ExpectedDigest> torch_values(const std::string& key,
                                         const std::vector<std::string>& results);

}  // namespace convoy::testing
