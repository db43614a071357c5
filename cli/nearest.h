// "Did you mean": the nearest of several names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convoy::cli {

/// Insertions, deletions, changes and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The name nearest to `word`, empty if none is near (more than a third of its letters differ).
std::string nearest(std::string_view word, const std::vector<std::string>& names);

/// "; did you mean NAME?", empty if none is near. `prefix` goes before the name.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names,
                         std::string_view prefix = {});

}  // namespace convoy::cli
