// The most memory that each worker held, measured beside predicted.
#pragma once

#include <string>

#include "cli/report/run_record.h"

namespace convoy::cli {

/// Empty where no worker's memory is known. `id` is unique on the page.
std::string memory_markup(const RunRecord& run, const std::string& id);

}  // namespace convoy::cli
