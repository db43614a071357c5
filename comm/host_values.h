// Agreements between processes on values in host memory; every member makes the same calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/host_communicator.h"

namespace convoy {

std::int64_t sum_over(HostCommunicator& group, std::int64_t value);
/// Added in rank order.
double sum_over(HostCommunicator& group, double value);
std::int64_t max_over(HostCommunicator& group, std::int64_t value);
/// Whether any member says yes.
bool any_of(HostCommunicator& group, bool value);
/// The text of `root`, of any length.
std::string broadcast_text(HostCommunicator& group, const std::string& text, int root = 0);
/// The texts of all, in rank order; they may differ in length.
std::vector<std::string> gather_texts(HostCommunicator& group, const std::string& text);

}  // namespace convoy
