// The text of a schedule: one line per worker, `OP stage.micro-batch` after `OP stage.micro-batch`.
// Empty lines and lines that begin with # are no workers. Used by `plan`, golden files, traces and
// `--schedule FILE`.
#pragma once

#include <string>
#include <string_view>

#include "engine/parallel/pipeline/instruction.h"

namespace convoy {

/// Two spaces between instructions, one within; each line ends.
std::string write_schedule(const Schedule& schedule);

/// Reads what write_schedule wrote, whatever the spaces. `usage` for anything else, with `source`
/// (a file's name), line and word.
Schedule parse_schedule(std::string_view text, std::string_view source = "schedule");

}  // namespace convoy
