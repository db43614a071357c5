// Texts of flags, variables and config files read as values. Every error is `usage` and starts with
// the origin: "--batch: 0 is out of range, expected 1 or more".
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::cli {

struct IntegerRange {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};

/// `low` itself is inside unless `open_low`; `high` is inside unless `open_high`.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_low = false;
  bool open_high = false;
};

/// A text and where it came from ("--batch", "CONVOY_BATCH", "run.toml:3: batch").
struct Value {
  std::string text;
  std::string origin;
};

std::int64_t read_integer(const Value& value, IntegerRange range);
std::uint64_t read_unsigned(const Value& value);
/// An integer that may end in KiB, MiB or GiB.
std::int64_t read_bytes(const Value& value);
double read_number(const Value& value, NumberRange range);
/// 1 true yes on, 0 false no off; an empty text is true (a bare flag).
bool read_toggle(const Value& value);
/// One of `choices`; the error names them and the nearest.
std::string read_choice(const Value& value, const std::vector<std::string>& choices);
/// Parts between commas; an empty part is an error.
std::vector<std::string> read_list(const Value& value);

}  // namespace convoy::cli
