// Networks by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/network.h"

namespace convoy {

/// resnet18, resnet34, resnet50, resnet101, resnet152, toy, line.
std::vector<std::string> model_names();

/// The network `name` with `classes` outputs, on cpu:0 in f32, drawn from `seed`. `usage` for an
/// unknown name, which lists the known ones. toy has 5 outputs and line 1, whatever `classes` is.
std::shared_ptr<Network> make_model(const std::string& name, std::int64_t classes,
                                    std::uint64_t seed = 0);

/// The same network without values: shapes alone, no memory. materialize(device, dtype, seed) on
/// it, or on a NetworkSlice of it, makes the values that make_model(name, classes, seed) has there.
std::shared_ptr<Network> make_model_without_values(const std::string& name, std::int64_t classes);

}  // namespace convoy
