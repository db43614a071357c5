#include "cli/json_lines.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "engine/io/text.h"

namespace convoy::cli {
namespace {

template <class T>
std::string shortest(T value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

template <class T, class ToJson>
std::string array(const std::vector<T>& values, ToJson to_json) {
  std::string text;
  for (const T& value : values) {
    if (!text.empty()) text += ',';
    text += to_json(value);
  }
  return "[" + text + "]";
}

std::string escape(unsigned char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    default:
      return c < 0x20 || c == 0x7F ? fmt::format("\\u{:04x}", c)
                                   : std::string(1, static_cast<char>(c));
  }
}

}  // namespace

std::string json_number(double value) {
  return shortest(value);
}
std::string json_number(float value) {
  return shortest(value);
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (char c : utf8_of_bytes(text)) out += escape(static_cast<unsigned char>(c));
  return out + "\"";
}

std::string json_array(const std::vector<std::string>& values) {
  return array(values, json_string);
}

JsonObject& JsonObject::add(std::string_view key, std::string_view value) {
  return add_raw(key, json_string(value));
}

JsonObject& JsonObject::add(std::string_view key, const std::vector<std::string>& values) {
  return add_raw(key, json_array(values));
}

JsonObject& JsonObject::add(std::string_view key, const std::vector<float>& values) {
  return add_raw(key, array(values, shortest<float>));
}

JsonObject& JsonObject::add(std::string_view key, const std::vector<double>& values) {
  return add_raw(key, array(values, shortest<double>));
}

JsonObject& JsonObject::add(std::string_view key, const std::vector<std::int64_t>& values) {
  return add_raw(key, array(values, [](std::int64_t value) { return std::to_string(value); }));
}

JsonObject& JsonObject::add(std::string_view key, const std::vector<JsonObject>& values) {
  return add_raw(key, array(values, [](const JsonObject& value) { return value.text(); }));
}

JsonObject& JsonObject::add_raw(std::string_view key, std::string_view json) {
  if (!members_.empty()) members_ += ',';
  members_ += json_string(key);
  members_ += ':';
  members_ += json;
  return *this;
}

}  // namespace convoy::cli
