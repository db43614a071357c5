#include "cli/value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "cli/json_lines.h"
#include "cli/nearest.h"
#include "kernels/base/error.h"

namespace convoy::cli {
namespace {

std::string describe(IntegerRange range) {
  if (range.high == std::numeric_limits<std::int64_t>::max()) {
    return fmt::format("{} or more", range.low);
  }
  return fmt::format("{} to {}", range.low, range.high);
}

std::string describe(NumberRange range) {
  std::string low =
      fmt::format("{} {}", range.open_low ? "more than" : "at least", to_json(range.low));
  if (std::isinf(range.low)) low = "a finite number";
  if (std::isinf(range.high)) return low;
  const char* word = range.open_high ? "less than" : "at most";
  return fmt::format("{} and {} {}", low, word, to_json(range.high));
}

/// Reads all of the text as T, or fails with what was expected.
template <class T>
T parse(const Value& value, const char* what, const std::string& range) {
  T result{};
  const char* end = value.text.data() + value.text.size();
  auto [stop, code] = std::from_chars(value.text.data(), end, result);
  CONVOY_CHECK(code != std::errc::result_out_of_range, "{}: {} is out of range, expected {}",
               value.origin, value.text, range);
  CONVOY_CHECK(code == std::errc() && stop == end, "{}: \"{}\" is not {}, expected {}",
               value.origin, value.text, what, range);
  return result;
}

}  // namespace

std::int64_t read_integer(const Value& value, IntegerRange range) {
  auto number = parse<std::int64_t>(value, "an integer", describe(range));
  CONVOY_CHECK(number >= range.low && number <= range.high, "{}: {} is out of range, expected {}",
               value.origin, value.text, describe(range));
  return number;
}

std::uint64_t read_unsigned(const Value& value) {
  return parse<std::uint64_t>(value, "an integer", "0 to 18446744073709551615");
}

std::int64_t read_bytes(const Value& value) {
  std::int64_t unit = 1;
  Value number = value;
  for (auto [suffix, bytes] :
       {std::pair{"KiB", 1LL << 10}, {"MiB", 1LL << 20}, {"GiB", 1LL << 30}}) {
    if (!number.text.ends_with(suffix)) continue;
    number.text.resize(number.text.size() - 3);
    unit = bytes;
  }
  return read_integer(number, {1, std::numeric_limits<std::int64_t>::max() / unit}) * unit;
}

double read_number(const Value& value, NumberRange range) {
  auto number = parse<double>(value, "a number", describe(range));
  bool inside = std::isfinite(number) &&
                (range.open_low ? number > range.low : number >= range.low) &&
                (range.open_high ? number < range.high : number <= range.high);
  CONVOY_CHECK(inside, "{}: {} is out of range, expected {}", value.origin, value.text,
               describe(range));
  return number;
}

bool read_toggle(const Value& value) {
  for (const char* yes : {"", "1", "true", "yes", "on"}) {
    if (value.text == yes) return true;
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    if (value.text == no) return false;
  }
  CONVOY_FAIL(usage, "{}: \"{}\" is not true or false", value.origin, value.text);
}

std::string read_choice(const Value& value, const std::vector<std::string>& choices) {
  for (const std::string& choice : choices) {
    if (value.text == choice) return choice;
  }
  CONVOY_FAIL(usage, "{}: \"{}\" is unknown, expected one of {}{}", value.origin, value.text,
              fmt::join(choices, ", "), did_you_mean(value.text, choices));
}

std::vector<std::string> read_list(const Value& value) {
  std::vector<std::string> parts(1);
  for (char c : value.text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (const std::string& part : parts) {
    CONVOY_CHECK(!part.empty(), "{}: \"{}\" has an empty entry, expected NAME,NAME", value.origin,
                 value.text);
  }
  return parts;
}

}  // namespace convoy::cli
