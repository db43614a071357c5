// Small agreements between the workers of a group, on values of the host. They go through the
// device's memory and a stream, so that any communicator will do; they block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "engine/tensor/tensor.h"

namespace convoy {

/// The values of each rank, in rank order; all give the same number of them.
std::vector<std::vector<std::int64_t>> gather_integers(Communicator& communicator, Stream& stream,
                                                       const std::vector<std::int64_t>& values);

/// The text of each rank, in rank order, of any lengths.
std::vector<std::string> gather_texts(Communicator& communicator, Stream& stream,
                                      const std::string& text);

}  // namespace convoy
