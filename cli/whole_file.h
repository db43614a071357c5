// Files that are whole or absent: written beside their place, then renamed into it.
#pragma once

#include <string>
#include <string_view>

namespace convoy::cli {

/// Says now what would fail at the end of a long run: makes the folders on the way; `usage` if
/// `path` is a folder, `resource` if the folders cannot be made. `flag` is named: "--report".
void prepare_file(const std::string& flag, const std::string& path);

/// Puts `text` in place of `path`; a pipe or device is written to as it is. `resource` if that
/// fails: what was there before stays.
void write_whole_file(const std::string& path, std::string_view text);

}  // namespace convoy::cli
