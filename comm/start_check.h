// At the start the processes compare what must be equal in all of them: version, settings, data.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "comm/host_communicator.h"

namespace convoy {

/// What a process says of itself: a name and a text each, in the order in which differences are
/// told.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Returns in all processes, or throws `usage` in all: each difference from process 0 is named with
/// the rank and both values.
void check_equal_facts(HostCommunicator& processes, const Facts& facts);

/// The same for facts already gathered, one entry a process; the text of the error, empty if all
/// are equal.
std::string differences(const std::vector<Facts>& of_processes);

}  // namespace convoy
