// Cases of reference files (tests/reference/README.md): reading them strictly, and running each on
// one device in one element type. A case that cannot be used throws `data`, a wrong value fails the
// running test.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/tensor/tensor.h"
#include "tests/support/formula.h"

namespace convoy::testing {

using Json = nlohmann::json;

/// A short text that tells the case from others.
std::string title(const Json& given);

/// Runs the case, whichever of the three kinds it is.
void run_case(const Json& given, const TensorOptions& options);
void run_op_case(const Json& given, const TensorOptions& options);
void run_training_case(const Json& given, const TensorOptions& options);
/// A training case of a ResNet through two stages, cut before layer3, on ref:0 and ref:1 in f64.
void run_staged_case(const Json& given);
void run_regression_case(const Json& given, const TensorOptions& options);

/// `data` unless `given` has all of `required` and nothing but those and `optional`.
void check_keys(const Json& given, const std::vector<std::string>& required,
                const std::vector<std::string>& optional = {});

/// `signed_values(name)` times `factor` as a tensor.
Tensor formula_tensor(const std::string& name, const Shape& shape, const TensorOptions& options,
                      double factor = 1);
/// floor(value(name, i) * classes), on the device of `options`.
Tensor formula_labels(const std::string& name, std::int64_t count, std::int64_t classes,
                      const TensorOptions& options);

/// Which parts of a digest are compared: float32 bounds of networks are stated for projections.
enum class DigestParts { all, projection };

/// Fails the running test unless `actual` has the digest `expected`, to `tolerance`.
void check_digest(const std::string& what, const std::string& probe, const Tensor& actual,
                  const Json& expected, double tolerance, DigestParts parts = DigestParts::all);

}  // namespace convoy::testing
